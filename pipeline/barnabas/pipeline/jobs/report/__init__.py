"""
What is in the logs of a broker, and how long it stays there.

::

    headers of all batches    batches.py      by Spark: fill, codecs, order, gaps, producers
    keys of all records       keys.py         by Spark: how unevenly they occur
    each segment's end        retention.py    by the rules of a running broker, through explain
    all of it                 facts.py        put together in making.py
    as rows                   frames.py
    as text                   text.py
    as a page                 page.py         with plots.py
    run by run                history.py      the figures.py of all runs; trends.py compares them
"""
