"""
What can go wrong in the storage engine.

::

    KafkaError (protocol)
    ├── KafkaStorageError        56  the disk failed, or the log directory is offline
    │   └── CorruptCheckpoint        a text file of the engine does not say what it should
    ├── OffsetOutOfRange          1  the log does not hold the offset
    ├── CorruptMessage
    │   └── CorruptRecord         2  bytes of a segment are not a batch
    └── (no code of its own)     -1
        ├── CorruptIndex             an index contradicts itself or its segment
        ├── InvalidOffset            an index entry would go backwards
        ├── SegmentOffsetOverflow    an offset is too far from its segment's base
        ├── InvalidLogDirectory      a directory that is no log of a partition, or two for one
        └── LogDirectoryLocked       another broker uses the log directory

An argument that no caller may pass is a ``ValueError``, as anywhere in Python.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.protocol import errors as protocol_errors
from barnabas.protocol.errors import (
    CorruptMessage,
    InconsistentTopicId,
    KafkaError,
    KafkaStorageError,
)

if TYPE_CHECKING:
    from barnabas.storage.segment import LogSegment

__all__ = [
    "CorruptCheckpoint",
    "CorruptIndex",
    "CorruptRecord",
    "InconsistentTopicId",
    "InvalidLogDirectory",
    "InvalidOffset",
    "KafkaError",
    "KafkaStorageError",
    "LogDirectoryLocked",
    "OffsetOutOfRange",
    "SegmentOffsetOverflow",
]


class OffsetOutOfRange(protocol_errors.OffsetOutOfRange):
    """
    The log does not hold *offset*, only those from *start* up to *end*, which comes next.
    """

    def __init__(self, offset: int, start: int, end: int, what: str = "the log") -> None:
        super().__init__(
            f"Received request for offset {offset} for {what}, "
            f"but we only have log segments upto {end} and a start offset of {start}."
        )
        self.offset, self.start, self.end = offset, start, end


class CorruptRecord(CorruptMessage):
    """
    What lies at *position* of the segment file *path* is not a batch.
    """

    def __init__(self, sentence: str, *, path: Path, position: int) -> None:
        super().__init__(sentence)
        self.path, self.position = path, position


class CorruptIndex(KafkaError):
    """
    The index *path* contradicts itself or its segment.
    """

    def __init__(self, sentence: str, *, path: Path) -> None:
        super().__init__(sentence)
        self.path = path


class CorruptCheckpoint(KafkaStorageError):
    """
    The text file *path*, a checkpoint or the like, does not say what it should.

    For Kafka this is as bad as a failing disk: the log directory goes offline.
    """

    def __init__(self, sentence: str, *, path: Path) -> None:
        super().__init__(sentence)
        self.path = path


class InvalidOffset(KafkaError):
    """
    An entry for *offset* would break the order of an index (Kafka's InvalidOffsetException).
    """

    def __init__(self, sentence: str, *, offset: int) -> None:
        super().__init__(sentence)
        self.offset = offset


class SegmentOffsetOverflow(KafkaError):
    """
    *offset* lies below the base of *segment*, or more than an int32 above it.
    """

    def __init__(self, segment: LogSegment, offset: int) -> None:
        super().__init__(f"Detected offset overflow at offset {offset} in segment {segment}")
        self.segment, self.offset = segment, offset


class InvalidLogDirectory(KafkaError):
    """
    *path* is no log of a partition though it should be one, or one of two for the same.
    """

    def __init__(self, sentence: str, *, path: Path) -> None:
        super().__init__(sentence)
        self.path = path


class LogDirectoryLocked(KafkaError):
    """
    Another broker, in this process or another one, uses the log directory *path*.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"Failed to acquire lock on file .lock in {path}. A Kafka instance in another process "
            "or thread is using this directory."
        )
        self.path = path
