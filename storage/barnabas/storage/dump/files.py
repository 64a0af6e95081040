"""
The files of a dump: their names as Kafka's tool prints them, and walks along their batches.

A walk holds one batch or one window of the file in memory, whichever is larger.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from struct import Struct
from typing import Final

from barnabas.protocol.records.batch import LOG_OVERHEAD, MAGIC_END, SMALLEST_LENGTH
from barnabas.protocol.records.varints import int32
from barnabas.protocol.structs import NamedTuple
from barnabas.storage.dump.failure import (
    ACCESS_DENIED,
    CORRUPT_RECORD,
    ILLEGAL_ARGUMENT,
    KAFKA_EXCEPTION,
    NO_SUCH_FILE,
    DumpFailure,
)
from barnabas.storage.dump.java_text import parse_long
from barnabas.storage.errors import KafkaStorageError
from barnabas.storage.fs.interface import File, Files
from barnabas.storage.readonly.files import opened
from barnabas.storage.segment.records import LARGEST_FILE

READ_AHEAD_BYTES: Final = 1024 * 1024

_START: Final = Struct(">qiib")


class DumpedFile:
    """
    A file that the user has named.

    Args:
        given: the name as the user wrote it. Most of the output has it in this form.
    """

    __slots__ = ("absolute_path", "files", "name", "path")

    def __init__(self, given: str, files: Files) -> None:
        self.path = re.sub("/+", "/", given)
        if len(self.path) > 1:
            self.path = self.path.removesuffix("/")
        self.files = files
        self.name = self.path.rpartition("/")[2]
        self.absolute_path = str(Path.cwd()).rstrip("/") + "/" + self.path
        if self.path.startswith("/"):
            self.absolute_path = self.path

    @property
    def base_offset(self) -> int:
        """
        The number in front of the first dot of the name.

        Raises:
            DumpFailure: the name does not begin with a number.
        """
        return parse_long(self.name.partition(".")[0])

    def sibling(self, suffix: str) -> str:
        """
        The absolute path of the file of the same segment that has *suffix*.
        """
        directory = self.absolute_path.rpartition("/")[0]
        return f"{directory}/{self.name.partition('.')[0]}{suffix}"

    def read(self) -> bytes:
        """
        Raises:
            DumpFailure: the file does not exist, or cannot be read.
        """
        with kafkas_exceptions(self.path):
            return self.files.read_bytes(Path(self.path))


@contextmanager
def open_log(files: Files, path: str) -> Iterator[LogSlice]:
    """
    Raises:
        DumpFailure: the file does not exist, or cannot be read.
    """
    with kafkas_exceptions(path), opened(files, Path(path)) as file:
        yield LogSlice(file, path)


@contextmanager
def kafkas_exceptions(path: str) -> Iterator[None]:
    """
    Turn the errors of the file system into those of Kafka's tool.
    """
    try:
        yield
    except FileNotFoundError as error:
        raise DumpFailure(NO_SUCH_FILE, path) from error
    except KafkaStorageError as error:
        cause = error.__cause__
        if isinstance(cause, PermissionError):
            raise DumpFailure(ACCESS_DENIED, path) from error
        reason = cause.strerror if isinstance(cause, OSError) else str(error)
        raise DumpFailure(KAFKA_EXCEPTION, f"java.io.IOException: {reason}") from error


class FileBatch(NamedTuple):
    """
    The place of a batch of any version in a file. Its bytes are read when they are asked for.
    """

    offset: int
    """The first number in it: the base offset, or the last offset where *magic* is 0 or 1."""
    magic: int
    position: int
    size: int
    window: Window

    def read(self, size: int) -> memoryview:
        """
        The first *size* bytes. They may end behind the batch, but not behind the file.

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
    The part of a file that was read last. One thread at a time may use it.
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
        path: the name of the file in errors.
        limit: the end of the slice in errors.
    """

    __slots__ = ("_file", "_limit", "_path", "_start", "size")

    def __init__(
        self,
        file: File,
        path: str,
        start: int = 0,
        size: int | None = None,
        limit: int = LARGEST_FILE,
    ) -> None:
        """
        Raises:
            DumpFailure: the file is larger than a segment can be.
        """
        self._file = file
        self._path = path
        self._start = start
        self._limit = limit
        if size is None:
            size = file.size()
            if size > LARGEST_FILE:
                raise DumpFailure(
                    KAFKA_EXCEPTION,
                    f"The size of segment {path} ({size}) is larger than the maximum allowed "
                    f"segment size of {LARGEST_FILE}",
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
            DumpFailure: *position* or *size* is negative, or *position* is behind the end.
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
        Yield the whole batches, and nothing for bytes behind the last of them.

        Raises:
            DumpFailure: the length of a batch is below the smallest one, or the file became
                shorter.
        """
        window = Window(self._file, str(self), read_ahead_bytes)
        position = self._start
        end = self._start + self.size
        unpack = _START.unpack_from
        while position < end - MAGIC_END:
            found = window.at(position, MAGIC_END)
            if len(found) < MAGIC_END:
                raise DumpFailure(
                    CORRUPT_RECORD, "Unexpected EOF while attempting to read the next batch"
                )
            offset, size, _epoch, magic = unpack(found)
            if size < SMALLEST_LENGTH:
                raise DumpFailure(
                    CORRUPT_RECORD,
                    f"Found record size {size} smaller than minimum record overhead "
                    f"({SMALLEST_LENGTH}) in file {self._path}.",
                )
            if position > end - LOG_OVERHEAD - size:
                return
            yield FileBatch(offset, magic, position, size + LOG_OVERHEAD, window)
            position += size + LOG_OVERHEAD
