"""
``barnabas explain``: the state of a log and the reasons for it.

::

    known       the settings and their sources, which the server reads
    logs        logs that are opened as a broker opens them, with changes in memory only
    lookup      the steps to a record: segment, index entry, scan
    endings     the reason why a segment was rolled
    retention   the time at which a segment is deleted
    cleaning    the plan of the cleaner
    groups      the groups, and what is deleted before they have read it
    report      all of these for one question
    wording/    sentences for people; as_text, as_json and as_columns are the forms of output

The functions of a running broker make every decision: ``log.retention``, ``log.rolling``,
``cleaner.cleanable``, the indexes and the log itself. Nothing here has a rule of its own.
"""
