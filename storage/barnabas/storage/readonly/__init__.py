"""
Log directories for tools that only read: nothing is made, changed or locked.

The engine opens a log to own it: it removes left-overs, lengthens indexes and writes snapshots. A
tool may read while a broker runs, or read a directory that nobody may change. ``dump``,
``explain``, ``verify`` and the pipeline all find and open files here.

::

    files.opened          one file, open for reading
    log_root              one of log.dirs: checkpoints, meta.properties, the partitions
    partition             the directory of one log: segments, snapshots, leader epochs
    segment, index_file   the batches and index entries of one segment
    overlay_files         a file system for the engine itself, whose changes stay in memory
"""
