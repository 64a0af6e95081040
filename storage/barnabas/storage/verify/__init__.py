"""
Whether a log directory is what it should be: every invariant of every file, checked.

::

    verify         several directories         which are log directories, which are logs
    root           one of log.dirs             meta.properties, checkpoints, what is in it
    cluster        what the metadata says      topic ids, logs that should be there, strays
    partition      the directory of one log    left-overs, order of the segments, its ends
    segment        one segment                 batch after batch, and with each:
      batch          header, checksum, records
      indexes        the entries that concern it
      epochs         its leader epoch
      producers      sequences, transactions; snapshots and transaction indexes

Each log is walked once, from its first byte to its last, and little more is remembered than what
the engine itself remembers of a log: the state of its producers. What is found goes to a
``Report``, by the name of a rule in ``rules``.

Nothing is changed. A broker may be at work: see ``verify`` for how its changes are told from
damage. ``repair`` does what a start of the broker would do, with the code of the engine.
"""
