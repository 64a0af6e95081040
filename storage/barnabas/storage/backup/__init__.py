"""
``barnabas backup``: copies of log directories that a broker can start on, made while one serves.

::

    backups/2026-11-26T07-55-00Z/data/     a whole log directory
            2026-11-27T07-55-00Z/data/     another one: what has not changed is the same file on the
                                           disk (a hard link), so that it takes no room
            .partial/                      one that is being made

A copy is what a crash at that moment would have left, and a start recovers it as after one. What
the files of a running broker guarantee, and what is done for the rest:

1. A closed segment does not change. Compaction puts another file in its place, and retention
   deletes the first ones: a log whose files were replaced meanwhile is copied again (``log_copy``).
2. Everything below a recovery point is on the disk: the checkpoints are copied before all logs.
3. All logs are listed at once, and each is copied up to the end that it had then. The listing has
   an order, since it takes a moment (``backups.order``).
"""
