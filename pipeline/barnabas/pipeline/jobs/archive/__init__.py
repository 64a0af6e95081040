"""
Closed segments in a table, each range of offsets exactly once.

A table is Delta's, Iceberg's, or an archive in Parquet with commits of its own::

    data/topic=T/partition=P/<start>-<end>-<attempt>.parquet    written by a worker, parquet.py
    _commits/T-P/<start>-<end>.json                             written by the driver, commits.py
    _commits/T-P/<start>.json                                   the same on an object store
    .lock                                                       of the run that writes, on a disk

A range of offsets is archived if and only if its commit is there (in other tables its version or
snapshot), which names the file with its records. A commit is made in one step, behind the commit
before it: at any instant the commits of a partition follow one another without a gap, and the
archive is whole as far as they go. A file that no commit names was left by a run that was killed.
Nobody reads it, and a later run removes it.

::

    what is to be done     planning.py    against the log and the commits, refusing what disagrees
    doing it               job.py         in the workers of Spark; only commits come back
    where files go         store.py       a local directory, or an object store
    its commits            commit_store.py  in Parquet: renamed, or made only if there is none
    what is there          table.py       for any format: commits.py, delta.py, iceberg.py
    reading it             reading.py     by Spark: the files that the table names, never by listing
                           files.py       the same without Spark, for `replay` and `compact`
"""
