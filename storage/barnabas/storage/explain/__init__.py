"""
Why a log is as it is, in words.

::

    what is known            known.py       settings and their sources, which the server reads
    a log to look at         looking.py     opened as a broker opens it, in memory only
    how a fetch finds it     finding.py     segment, index entry, scan
    why a segment ended      endings.py     the roll
    when it leaves           leaving.py     retention
    what the cleaner does    cleaning.py    compaction
    in words                 wording/       sentences; as_json.py gives the same as data

Whatever is decided is asked of the functions that decide it in a running broker: ``retention``,
``rolling``, ``cleaning_plan``, the indexes and the log itself. Nothing here has a rule of its own.
"""
