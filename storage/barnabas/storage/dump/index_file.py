"""
Offset and time indexes as they lie in their files, zeros at the end and all.

``index`` and its like open an index to write to it. Here a file is looked at and never touched:
Kafka's tool makes one that is missing and cuts off bytes that are no entry, which a running broker
would not like.
"""

from __future__ import annotations

from pathlib import Path
from struct import Struct
from typing import Final, Protocol

from barnabas.storage.dump.failure import CORRUPT_INDEX, ILLEGAL_ARGUMENT, DumpFailure
from barnabas.storage.dump.java_text import int64
from barnabas.storage.fs.interface import Files
from barnabas.storage.index.search import SearchResult, search

_OFFSET_ENTRY: Final = Struct(">ii")
_TIME_ENTRY: Final = Struct(">qi")
_INT32: Final = Struct(">i")


class IndexFile(Protocol):
    """
    What offset and time indexes have in common.
    """

    entries: int

    def sanity_check(self) -> None:
        """
        Raises:
            DumpFailure: a broker would make the index anew when it starts.
        """


def _read(files: Files, path: str) -> bytes:
    """
    Raises:
        DumpFailure: there is no such file. Kafka's tool makes an empty one and then says this.
    """
    try:
        return files.read_bytes(Path(path))
    except FileNotFoundError as error:
        raise DumpFailure(ILLEGAL_ARGUMENT, "Invalid max index size: -1") from error


class OffsetIndexFile:
    """
    Offsets, and where in the log the batches lie that end with them.

    Args:
        path: absolute, as errors show it.

    Raises:
        DumpFailure: there is no such file.
    """

    def __init__(self, files: Files, path: str, base_offset: int) -> None:
        self._data = memoryview(_read(files, path))
        self._path = path
        self.base_offset = base_offset
        self.entries = len(self._data) // _OFFSET_ENTRY.size

    def entry(self, slot: int) -> tuple[int, int]:
        """
        Offset and position.
        """
        relative, position = _OFFSET_ENTRY.unpack_from(self._data, slot * _OFFSET_ENTRY.size)
        return int64(self.base_offset + relative), position

    def lookup(self, offset: int) -> int:
        """
        The position from which on *offset* is to be looked for.
        """
        slot = search(
            self._data,
            self.entries,
            offset - self.base_offset,
            SearchResult.LARGEST_LOWER_BOUND,
            unpack=_INT32.unpack_from,
            width=_OFFSET_ENTRY.size,
            shift=0,
        )
        return 0 if slot < 0 else self.entry(slot)[1]

    def sanity_check(self) -> None:
        if self.entries and (last := self.entry(self.entries - 1)[0]) < self.base_offset:
            raise DumpFailure(
                CORRUPT_INDEX,
                f"Corrupt index found, index file {self._path} has non-zero size but the last "
                f"offset is {last} which is less than the base offset {self.base_offset}",
            )
        if len(self._data) % _OFFSET_ENTRY.size:
            raise DumpFailure(
                CORRUPT_INDEX,
                f"Index file {self._path} is corrupt, found {len(self._data)} bytes which is "
                f"neither positive nor a multiple of {_OFFSET_ENTRY.size}",
            )


class TimeIndexFile:
    """
    Timestamps, and the offsets up to which no record has a larger one.

    Args:
        path: absolute, as errors show it.

    Raises:
        DumpFailure: there is no such file.
    """

    def __init__(self, files: Files, path: str, base_offset: int) -> None:
        self._data = memoryview(_read(files, path))
        self._path = path
        self.base_offset = base_offset
        self.entries = len(self._data) // _TIME_ENTRY.size

    def entry(self, slot: int) -> tuple[int, int]:
        """
        Timestamp and offset.
        """
        timestamp, relative = _TIME_ENTRY.unpack_from(self._data, slot * _TIME_ENTRY.size)
        return timestamp, int64(self.base_offset + relative)

    def sanity_check(self) -> None:
        corrupt = f"Corrupt time index found, time index file ({self._path}) has non-zero size but"
        if self.entries:
            first, _ = self.entry(0)
            timestamp, offset = self.entry(self.entries - 1)
            if timestamp < first:
                raise DumpFailure(
                    CORRUPT_INDEX,
                    f"{corrupt} the last timestamp is {timestamp} which is less than the first "
                    f"timestamp {first}",
                )
            if offset < self.base_offset:
                raise DumpFailure(
                    CORRUPT_INDEX,
                    f"{corrupt} the last offset is {offset} which is less than the first offset "
                    f"{self.base_offset}",
                )
        if len(self._data) % _TIME_ENTRY.size:
            raise DumpFailure(
                CORRUPT_INDEX,
                f"Time index file {self._path} is corrupt, found {len(self._data)} bytes which is "
                f"neither positive nor a multiple of {_TIME_ENTRY.size}",
            )
