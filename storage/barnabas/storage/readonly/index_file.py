"""
The entries of an index file, read without opening it as an index.

The file of an active segment is as long as it may ever become, and nobody but its owner knows how
many entries are in it. The rest is zeros. As no entry but one is all zeros, the zeros at the end
are left out; the exception is the first entry of a time index, that of a batch of time 0 which ends
at the base offset.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from struct import Struct
from typing import Final

from barnabas.storage.fs.interface import File, Files

_CHUNK: Final = 1 << 20
_ZEROS: Final = bytes(_CHUNK)


class IndexFile:
    """
    A file of entries of one width; it may be missing.

    The sizes are those when the object was made: what is appended later is not there.
    """

    __slots__ = ("_entry", "_file", "path", "size", "used")

    def __init__(self, files: Files, path: Path, entry: Struct) -> None:
        self.path = path
        self._entry = entry
        self._file: File | None = None
        self.size: int | None = None
        """Bytes of the file; None if there is none."""
        self.used = 0
        """Bytes of the entries, without the zeros behind them and without a piece of an entry."""
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
        Entries in the file.
        """
        return self.used // self._entry.size

    @property
    def is_preallocated(self) -> bool:
        """
        Whether there are zeros behind the entries.
        """
        return self.size is not None and self.size - self.used >= self._entry.size

    def entries(self) -> Iterator[tuple[int, ...]]:
        """
        The fields of each entry as they are in the file.
        """
        if self._file is None:
            return
        width = self._entry.size
        chunk = _CHUNK // width * width
        for position in range(0, self.used, chunk):
            data = self._file.read(position, min(chunk, self.used - position))
            # A broker may have cut the file meanwhile.
            yield from self._entry.iter_unpack(data[: len(data) - len(data) % width])


def _end_of_data(file: File, size: int) -> int:
    """
    Where the zeros begin at the end of the first *size* bytes.
    """
    end = size
    while end:
        start = max(0, end - _CHUNK)
        data = file.read(start, end - start)
        if data != _ZEROS[: len(data)]:
            return start + len(data.rstrip(b"\0"))
        end = start
    return 0
