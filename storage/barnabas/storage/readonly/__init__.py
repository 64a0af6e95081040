"""
A log directory as it lies on the disk, for tools: nothing is made, changed or locked.

The engine opens a log to own it: left-overs are removed, indexes made longer, snapshots written. A
tool that only wants to know may look while a broker is at work, or at a directory that nobody may
touch. So here files are listed and read, and what is odd about them is shown and not mended.

::

    LogRoot                 one of log.dirs: checkpoints, meta.properties, the partitions
    PartitionDirectory      the log of one partition: segments, snapshots, leader epochs
    ReadOnlySegment         batches and index entries of one segment
"""

from barnabas.storage.readonly.index_file import IndexFile
from barnabas.storage.readonly.log_root import Checkpoints, LogRoot
from barnabas.storage.readonly.partition import PartitionDirectory
from barnabas.storage.readonly.segment import ReadOnlySegment, StoredBatch

__all__ = [
    "Checkpoints",
    "IndexFile",
    "LogRoot",
    "PartitionDirectory",
    "ReadOnlySegment",
    "StoredBatch",
]
