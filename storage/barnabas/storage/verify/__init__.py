"""
``barnabas verify``: checks every invariant of every file of a log directory.

::

    verification   several directories         log directories and single logs
    root           one of log.dirs             meta.properties, checkpoints, names
    cluster        the metadata                topic ids, missing logs, strays
    partition      the directory of one log    left-overs, order of the segments, its end
    segment        one segment                 batch after batch, and for each:
      batch          header, checksum, records
      indexes        its entries
      epochs         its leader epoch
      producers      sequences, transactions; snapshots and transaction indexes

Each log is read once, from its first byte to its last. The memory is that of the engine for a log:
the state of its producers. A ``Report`` takes the violations, each by the name of one of the
``invariants``.

Nothing is changed. A broker may be running: ``verification`` says how its changes are not taken for
damage. ``repair`` does the work of a start after a crash, with the code of the engine.
"""
