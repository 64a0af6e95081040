"""
The JSON API of a broker, which changes nothing.

::

    app                 all operations; mounted: loads them with the first request
    context             the broker that they look at, and the threads that read its files
    cluster, topics     sizes, rates, and what somebody should look at
    look                one pass over all logs, for these: ``rates`` and ``attention`` come from it
    timeline            a partition and its segments, in columns
    explaining          the answers of ``barnabas explain``, with suppositions; look-ups
    segments            the files of one segment: index entries and batches
    records, tail       records, as far as they may be seen: ``contents``
    groups              members, offsets and lag: ``positions``
    transactions        transactional ids; the producers of a partition
    openapi             the description of it all, from the tables

What the broker has in memory is read on the event loop in turns, files in threads and without
owning them. Answers are plain dictionaries; a ``TypedDict`` beside each says what is in it.
"""

from typing import Final

PREFIX: Final = "/api/v1"
