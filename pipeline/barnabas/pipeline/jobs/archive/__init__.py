"""
Closed segments as Parquet, each range of offsets exactly once.

::

    data/topic=T/partition=P/<start>-<end>-<attempt>.parquet    written by a worker, parquet.py
    _commits/T-P/<start>-<end>.json                             written by the driver, commits.py
    .lock                                                       held by the run that writes

A range of offsets is archived if and only if its commit is there, which names the file with its
records. A commit is made in one step, behind the commit before it: at any instant the commits of a
partition follow one another without a gap, and the archive is whole as far as they go. A file that
no commit names was left by a run that was killed. Nobody reads it, and the next run removes it.

::

    what is to be done     planning.py    against the log and the commits, refusing what disagrees
    doing it               job.py         in the workers of Spark; only commits come back
    reading it             reading.py     through the commits, never by listing directories
"""
