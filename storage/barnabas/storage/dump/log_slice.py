"""
A file of batches, walked from the front without ever holding more of it than a batch or a window.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Final

from barnabas.protocol.structs import NamedTuple
from barnabas.storage.dump.failure import (
    CORRUPT_RECORD,
    ILLEGAL_ARGUMENT,
    KAFKA_EXCEPTION,
    DumpFailure,
)
from barnabas.storage.dump.java_text import int32
from barnabas.storage.fs.interface import File

LARGEST_INT: Final = 2**31 - 1
LOG_OVERHEAD: Final = 12
HEADER_UP_TO_MAGIC: Final = 17
SMALLEST_RECORD: Final = 14
READ_AHEAD_BYTES: Final = 1024 * 1024

_START: Final = Struct(">qiib")


class FileBatch(NamedTuple):
    """
    Where a batch of any version lies in a file; its bytes are read when they are asked for.
    """

    offset: int
    """The first number in it: the base offset, or the last offset where *magic* is 0 or 1."""
    magic: int
    position: int
    size: int
    window: Window

    def read(self, size: int) -> memoryview:
        """
        The first *size* bytes. They may reach beyond the batch, but not beyond the file.

        Raises:
            DumpFailure: the file ends before.
        """
        found = self.window.at(self.position, size)
        if len(found) < size:
            raise DumpFailure(
                KAFKA_EXCEPTION,
                f"Failed to load record batch at position {self.position} from {self.window.name}",
            )
        return found


class Window:
    """
    The part of a file that was read last.

    Not safe to use from two threads.
    """

    __slots__ = ("_data", "_file", "_position", "_read_ahead", "name")

    def __init__(self, file: File, name: str, read_ahead_bytes: int = READ_AHEAD_BYTES) -> None:
        self.name = name
        self._file = file
        self._read_ahead = read_ahead_bytes
        self._position = 0
        self._data = memoryview(b"")

    def at(self, position: int, size: int) -> memoryview:
        """
        *size* bytes from *position* on, fewer at the end of the file.
        """
        start = position - self._position
        if start < 0 or start + size > len(self._data):
            self._data = memoryview(self._file.read(position, max(size, self._read_ahead)))
            self._position = position
            start = 0
        return self._data[start : start + size]


class LogSlice:
    """
    The batches between two positions of a file (Kafka's FileRecords).

    Args:
        path: how errors call the file.
        end: the last position of the whole; None for all that a file may have.
    """

    __slots__ = ("_file", "_limit", "_path", "_start", "size")

    def __init__(
        self, file: File, path: str, start: int = 0, size: int | None = None, limit: int = -1
    ) -> None:
        """
        Raises:
            DumpFailure: the file is larger than a segment can be.
        """
        self._file = file
        self._path = path
        self._start = start
        self._limit = LARGEST_INT if limit < 0 else limit
        if size is None:
            size = file.size()
            if size > LARGEST_INT:
                raise DumpFailure(
                    KAFKA_EXCEPTION,
                    f"The size of segment {path} ({size}) is larger than the maximum allowed "
                    f"segment size of {LARGEST_INT}",
                )
        self.size = size

    def __str__(self) -> str:
        return (
            f"FileRecords(size={self.size}, file={self._path}, start={self._start}, "
            f"end={self._limit})"
        )

    def slice(self, position: int, size: int) -> LogSlice:
        """
        At most *size* bytes from *position* on.

        Raises:
            DumpFailure: that is nothing which a file could have, or beyond its end.
        """
        if position < 0:
            raise DumpFailure(ILLEGAL_ARGUMENT, f"Invalid position: {position} in read from {self}")
        if position > self.size:
            raise DumpFailure(
                ILLEGAL_ARGUMENT, f"Slice from position {position} exceeds end position of {self}"
            )
        if size < 0:
            raise DumpFailure(ILLEGAL_ARGUMENT, f"Invalid size: {size} in read from {self}")
        end = int32(self._start + position + size)
        if end < 0 or end > self._start + self.size:
            end = self._start + self.size
        start = self._start + position
        return LogSlice(self._file, self._path, start, end - start, end)

    def batches(self, read_ahead_bytes: int = READ_AHEAD_BYTES) -> Iterator[FileBatch]:
        """
        The whole batches; what follows the last of them is passed over.

        Raises:
            DumpFailure: a batch says to be smaller than any can be, or the file became shorter.
        """
        window = Window(self._file, str(self), read_ahead_bytes)
        position = self._start
        end = self._start + self.size
        unpack = _START.unpack_from
        while position < end - HEADER_UP_TO_MAGIC:
            found = window.at(position, HEADER_UP_TO_MAGIC)
            if len(found) < HEADER_UP_TO_MAGIC:
                raise DumpFailure(
                    CORRUPT_RECORD, "Unexpected EOF while attempting to read the next batch"
                )
            offset, size, _epoch, magic = unpack(found)
            if size < SMALLEST_RECORD:
                raise DumpFailure(
                    CORRUPT_RECORD,
                    f"Found record size {size} smaller than minimum record overhead "
                    f"({SMALLEST_RECORD}) in file {self._path}.",
                )
            if position > end - LOG_OVERHEAD - size:
                return
            yield FileBatch(offset, magic, position, size + LOG_OVERHEAD, window)
            position += size + LOG_OVERHEAD
