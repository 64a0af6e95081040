"""
The errors of the storage engine.

::

    KafkaError (protocol)
    ├── KafkaStorageError        56  the disk failed, or the log directory is offline
    │   └── CorruptCheckpoint        a text file of the engine is malformed
    │       └── LaterCheckpoint          it is of a version that this release does not know
    ├── TooManyOpenFiles         56  no descriptor is left; the disk is well
    ├── CorruptMessage
    │   └── CorruptRecord         2  bytes of a segment are not a batch
    ├── RecordValidationError        records of a batch are not acceptable
    │   ├── RejectedTimestamps   32  the timestamps of some of them
    │   └── RejectedRecords      87  something else about some of them
    └── (no code of its own)     -1
        ├── CorruptIndex             an index contradicts itself or its segment
        ├── CorruptSnapshot          a snapshot of producers is malformed
        ├── InvalidOffset            an index entry would go backwards
        ├── OffsetsOutOfOrder        batches have their offsets, and these do not grow
        ├── UnexpectedAppendOffset   batches have offsets that the log has already
        ├── SegmentOffsetOverflow    an offset is too far from its segment's base
        ├── InvalidQuorumState       quorum-state cannot be understood
        ├── InvalidLogDirectory      a directory that is no log of a partition, or two for one
        └── LogDirectoryLocked       another broker uses the log directory

An argument that no caller may pass is a ``ValueError``, as anywhere in Python. ``BatchTakesLong``
is no failure: it asks the caller for a thread.
"""

from __future__ import annotations

import errno
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from barnabas.protocol.errors import (
    CorruptMessage,
    InconsistentTopicId,
    InvalidRecord,
    InvalidTimestamp,
    KafkaError,
    KafkaStorageError,
)
from barnabas.protocol.structs import NamedTuple

__all__ = [
    "WRITTEN_LATER",
    "BatchTakesLong",
    "CorruptCheckpoint",
    "CorruptIndex",
    "CorruptRecord",
    "CorruptSnapshot",
    "InconsistentTopicId",
    "InvalidLogDirectory",
    "InvalidOffset",
    "KafkaError",
    "KafkaStorageError",
    "LaterCheckpoint",
    "LogDirectoryLocked",
    "OffsetsOutOfOrder",
    "RecordError",
    "RecordValidationError",
    "RejectedRecords",
    "RejectedTimestamps",
    "SegmentOffsetOverflow",
    "TooManyOpenFiles",
    "UnexpectedAppendOffset",
    "is_name_too_long",
]

WRITTEN_LATER: Final = (
    "A later version of Barnabas or of Apache Kafka has written it. Start that version on this"
    " directory again, or restore a backup from before the upgrade."
)
"""
What an operator is advised who has started an older version on a directory.
"""


class TooManyOpenFiles(KafkaError):
    """
    A file cannot be opened or mapped, because the process or the system has too many open, or no
    room for a further map (``vm.max_map_count``, ``ulimit -v``).

    The disk has not failed, so this is no ``KafkaStorageError`` and takes no log directory offline.
    Clients see the same code, upon which they try again.
    """

    code = KafkaStorageError.code


def is_name_too_long(error: KafkaError) -> bool:
    """
    Whether the file system refused the name of a file or directory. The disk has not failed: other
    names are fine.
    """
    cause = error.__cause__
    return isinstance(cause, OSError) and cause.errno == errno.ENAMETOOLONG


class BatchTakesLong(Exception):
    """
    To examine a batch takes long. It was not appended: call ``Log.examine`` in a thread.
    """


class CorruptRecord(CorruptMessage):
    """
    The bytes at *position* of the segment file *path* are not a batch.
    """

    def __init__(self, sentence: str, *, path: Path, position: int) -> None:
        super().__init__(sentence)
        self.path, self.position = path, position


class RecordError(NamedTuple):
    """
    A record that is not acceptable, by its number in the batch, and why.
    """

    batch_index: int
    message: str


class RecordValidationError(KafkaError):
    """
    Some records of a batch are not acceptable, so none of it is taken (KIP-467).
    """

    def __init__(self, sentence: str, record_errors: Sequence[RecordError]) -> None:
        super().__init__(sentence)
        self.record_errors = record_errors


class RejectedRecords(RecordValidationError, InvalidRecord):
    """
    Records without a key where one is needed.
    """

    def __init__(self, record_errors: Sequence[RecordError]) -> None:
        shown = ", ".join(
            f"RecordError(batchIndex={index}, message='{message}')"
            for index, message in record_errors[:3]
        )
        super().__init__(
            f"One or more records have been rejected due to {len(record_errors)} record errors in "
            f"total, and only showing the first three errors at most: [{shown}]",
            record_errors,
        )


class RejectedTimestamps(RecordValidationError, InvalidTimestamp):
    """
    Records whose timestamp is out of range, among others maybe.
    """

    def __init__(self, record_errors: Sequence[RecordError]) -> None:
        super().__init__(
            "One or more records have been rejected due to invalid timestamp", record_errors
        )


class OffsetsOutOfOrder(KafkaError):
    """
    The offsets of batches that have them already do not grow.
    """


class UnexpectedAppendOffset(KafkaError):
    """
    Batches that have their offsets already begin below the end of the log.
    """

    def __init__(self, sentence: str, *, first_offset: int, last_offset: int) -> None:
        super().__init__(sentence)
        self.first_offset, self.last_offset = first_offset, last_offset


class CorruptSnapshot(KafkaError):
    """
    The bytes of a producer snapshot are not a snapshot, in the words of Kafka.
    """


class CorruptIndex(KafkaError):
    """
    The index *path* contradicts itself or its segment.
    """

    def __init__(self, sentence: str, *, path: Path) -> None:
        super().__init__(sentence)
        self.path = path


class CorruptCheckpoint(KafkaStorageError):
    """
    The text file *path*, for example a checkpoint, is malformed.

    As in Kafka it counts as a failure of the disk: the log directory becomes offline.
    """

    def __init__(self, sentence: str, *, path: Path) -> None:
        super().__init__(sentence)
        self.path = path


class LaterCheckpoint(CorruptCheckpoint):
    """
    The text file *path* is of a version that this release does not know.
    """

    def __init__(self, sentence: str, *, path: Path) -> None:
        super().__init__(f"{sentence}. {WRITTEN_LATER}", path=path)


class InvalidOffset(KafkaError):
    """
    An entry for *offset* would break the order of an index (Kafka's InvalidOffsetException).
    """

    def __init__(self, sentence: str, *, offset: int) -> None:
        super().__init__(sentence)
        self.offset = offset


class SegmentOffsetOverflow(KafkaError):
    """
    *offset* lies below the base offset of the segment in *path*, or more than an int32 above it.
    """

    def __init__(self, path: Path, base_offset: int, offset: int) -> None:
        super().__init__(f"Detected offset overflow at offset {offset} in segment {path}")
        self.path, self.base_offset, self.offset = path, base_offset, offset


class InvalidLogDirectory(KafkaError):
    """
    *path* is no log of a partition though it should be one, or one of two for the same.
    """

    def __init__(self, sentence: str, *, path: Path) -> None:
        super().__init__(sentence)
        self.path = path


class InvalidQuorumState(KafkaError):
    """
    The file cannot be parsed. To guess an epoch could use one for a second time.
    """


class LogDirectoryLocked(KafkaError):
    """
    Another broker, in this process or another one, uses the log directory *path*.
    """

    def __init__(self, path: Path, holder: int | None = None) -> None:
        """
        Args:
            holder: the process that has the lock, 0 if it is in another container; None if that is
                not known.
        """
        whose = "" if holder is None else " It is one of another container."
        if holder:
            whose = f" It is process {holder}."
        super().__init__(
            f"Failed to acquire lock on file .lock in {path}. A Kafka instance in another process "
            f"or thread is using this directory.{whose} Stop it first, or name another directory "
            "with --data-dir or log.dirs."
        )
        self.path = path
