"""
Index files, read without opening them as an index that grows.

The file of an active segment has the largest size that it may get, with zeros behind its entries,
and only its owner knows the number of entries. ``IndexFile`` leaves the zeros at the end out. No
entry is all zeros except one: the first entry of a time index for a batch of timestamp 0 whose last
offset is the base offset.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from struct import Struct
from typing import Final

from barnabas.storage.fs.interface import File, Files

_CHUNK: Final = 1 << 20
_ZEROS: Final = bytes(_CHUNK)


class BytesInMemory:
    """
    The bytes of a file in the place of a ``MappedFile``: the engine's index classes read from it.
    """

    __slots__ = ("created", "path", "view")

    def __init__(self, path: Path, data: bytes) -> None:
        self.path = path
        self.created = False
        self.view = memoryview(data)

    def open_for_writing(self) -> None: ...

    def give_back(self) -> None: ...

    def put(self, position: int, data: bytes) -> None:
        raise AssertionError(f"{self.path} is only read")

    def resize(self, size: int) -> None: ...

    def flush(self) -> None: ...

    def close(self) -> None: ...


class IndexFile:
    """
    A file of entries of one width, read a chunk at a time. The file may be missing.

    The sizes are those at the time when the object was made.

    Args:
        entry: the fields of an entry, as the engine declares them.
    """

    __slots__ = ("_entry", "_file", "path", "size", "used")

    def __init__(self, files: Files, path: Path, entry: Struct) -> None:
        self.path = path
        self._entry = entry
        self._file: File | None = None
        self.size: int | None = None
        """Bytes of the file; None if it is missing."""
        self.used = 0
        """Bytes of whole entries, without the zeros behind them."""
        try:
            self._file = files.open(path, create=False, read_only=True)
        except FileNotFoundError:
            return
        self.size = self._file.size()
        whole = self.size - self.size % entry.size
        data_end = _end_of_data(self._file, whole)
        self.used = -(-data_end // entry.size) * entry.size

    @property
    def exists(self) -> bool:
        return self.size is not None

    @property
    def entry_size(self) -> int:
        return self._entry.size

    @property
    def count(self) -> int:
        """
        The number of entries.
        """
        return self.used // self._entry.size

    @property
    def is_preallocated(self) -> bool:
        """
        Whether zeros of one entry or more are behind the entries.
        """
        return self.size is not None and self.size - self.used >= self._entry.size

    def entries(self) -> Iterator[tuple[int, ...]]:
        """
        Yield the fields of each entry as they are in the file.
        """
        if self._file is None:
            return
        width = self._entry.size
        chunk = _CHUNK // width * width
        for position in range(0, self.used, chunk):
            data = self._file.read(position, min(chunk, self.used - position))
            # A broker may have truncated the file.
            yield from self._entry.iter_unpack(data[: len(data) - len(data) % width])


def _end_of_data(file: File, size: int) -> int:
    """
    The position of the zeros at the end of the first *size* bytes.
    """
    end = size
    while end:
        start = max(0, end - _CHUNK)
        data = file.read(start, end - start)
        if data != _ZEROS[: len(data)]:
            return start + len(data.rstrip(b"\0"))
        end = start
    return 0
