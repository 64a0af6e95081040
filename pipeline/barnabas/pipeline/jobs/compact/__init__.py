"""
The latest record of each key, as Parquet.

::

    compacted/topic=T/partition=P/<start>-<end>-<attempt>.parquet    written by a worker, job.py
    _done/T-P.json         a partition of a run that goes on, snapshots.py
    _snapshots/T.json      the partitions of a topic and their files, snapshots.py
    .lock                  held by the run that writes

The snapshot of a topic is made in one step when all of its partitions are done, and replaces the
one before. What no snapshot names is not part of it. A run that is killed leaves files and notes of
the partitions that it was done with; the next one takes those that still are what it would make,
and removes the rest.

::

    where records come from    sources.py     a log, or an archive of one
    which records stay         latest.py      the last one of each key, as Kafka's cleaner decides
    what is to be done         planning.py    against what is there already
    doing it                   job.py         a partition at a time, in the workers of Spark
    reading it                 reading.py     through the snapshots, never by listing directories
"""
