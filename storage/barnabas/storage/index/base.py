"""
Sorted entries of a fixed width in a file, and how to find one.

An index file has no header and no checksum: entry after entry, each a key and a value, both growing
along the file. The file of an active segment is as long as it may ever become, which costs nothing
as the rest is a hole; when the segment is rolled or closed the hole is cut off. So the number of
entries is not written anywhere: a file that is opened counts as full.

``offset_index`` and ``time_index`` declare the entries.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from pathlib import Path
from struct import Struct
from typing import ClassVar, Final, Self

from barnabas.storage.errors import CorruptIndex
from barnabas.storage.fs.interface import Files, MappedFile
from barnabas.storage.index.search import SearchResult, Unpack, search
from barnabas.storage.units import INT_MAX

LARGEST_RELATIVE_OFFSET: Final = INT_MAX
_INT32: Final = Struct(">i")


class _NoFile:
    """
    In the place of a file that was removed before it was opened.
    """

    __slots__ = ("created", "path", "view")

    def __init__(self, path: Path) -> None:
        self.path = path
        self.created = False
        self.view = memoryview(b"")

    def open_for_writing(self) -> None: ...

    def give_back(self) -> None: ...

    def put(self, position: int, data: bytes) -> None:
        raise AssertionError(f"{self.path} was removed: its segment takes no appends")

    def resize(self, size: int) -> None: ...

    def flush(self) -> None: ...

    def close(self) -> None: ...


class _Unwritten(_NoFile):
    """
    In the place of a file that is written when all its entries are known. Until then a search finds
    none of them, and begins at the base of the segment.
    """

    __slots__ = ("content",)

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.created = True
        self.content = bytearray()

    def put(self, position: int, data: bytes) -> None:
        self.content[position : position + len(data)] = data

    def resize(self, size: int) -> None:
        del self.content[size:]


class Index:
    """
    The entries of one index file.

    Invariants:

    1. ``entries`` never counts an entry that is not wholly in the file.
    2. Keys grow along the file, unless another program wrote it: its content is not checked.
    3. The file is never shorter than its entries, whatever size is asked for.

    One thread at a time may change it: the log that owns the segment holds its lock. Lookups are
    safe from any thread at any time; they see the entries that were there when they began.
    """

    __slots__ = (
        "_mapped",
        "base_offset",
        "entries",
        "full_at",
        "length",
        "max_entries",
        "max_index_size",
    )

    entry_size: ClassVar[int]
    offset_at: ClassVar[int] = 0
    """The byte of the relative offset, an int32, in an entry."""
    reserved_entries: ClassVar[int] = 0
    """Slots that stay free until the segment is rolled or closed."""

    def __init__(self, mapped: MappedFile, base_offset: int, max_index_size: int) -> None:
        self._mapped = mapped
        self.base_offset = base_offset
        self.max_index_size = max_index_size
        self.length = len(mapped.view)
        """Bytes of the file, with the hole."""
        self.max_entries = self.length // self.entry_size
        self.full_at = self.max_entries - self.reserved_entries
        """The number of entries of a full index."""
        self.entries = 0 if mapped.created else self.max_entries

    @classmethod
    def open(
        cls,
        files: Files,
        path: Path,
        base_offset: int,
        max_index_size: int = -1,
        *,
        writable: bool = True,
    ) -> Self:
        """
        The index in the file *path*; a new file is as long as *max_index_size* allows.

        Raises:
            ValueError: not even one entry would fit into a new file.
            FileNotFoundError: there is no file, and none may be made as it is only to be read.
        """
        if not writable:
            return cls(files.map(path, None, read_only=True), base_offset, max_index_size)
        is_old = max_index_size < cls.entry_size and files.exists(path)
        size = 0 if is_old else cls.new_size(max_index_size)
        return cls(files.map(path, size), base_offset, max_index_size)

    @classmethod
    def new_size(cls, max_index_size: int) -> int:
        """
        The length of the file of a new index, in bytes.

        Raises:
            ValueError: not even one entry would fit into it.
        """
        if max_index_size < cls.entry_size:
            raise ValueError(f"Invalid max index size: {max_index_size}")
        return cls._rounded(max_index_size)

    @classmethod
    def without_file(cls, path: Path, base_offset: int, max_index_size: int) -> Self:
        """
        An index without entries, for a segment whose file *path* was removed.
        """
        return cls(_NoFile(path), base_offset, max_index_size)

    @classmethod
    def unwritten(cls, path: Path, base_offset: int, max_index_size: int) -> Self:
        """
        An index without entries whose file *path* is going to be written with ``content``.
        """
        index = cls(_Unwritten(path), base_offset, max_index_size)
        index.resize(max_index_size)
        return index

    @property
    def content(self) -> bytes:
        """
        The entries of an ``unwritten`` index.
        """
        assert isinstance(self._mapped, _Unwritten)
        return bytes(self._mapped.content[: self.size_in_bytes])

    @classmethod
    def _rounded(cls, size: int) -> int:
        return size // cls.entry_size * cls.entry_size

    @property
    def path(self) -> Path:
        return self._mapped.path

    @path.setter
    def path(self, path: Path) -> None:
        self._mapped.path = path

    @property
    def is_full(self) -> bool:
        return self.entries >= self.full_at

    @classmethod
    def slots_in(cls, size: int) -> int:
        """
        How many entries fill an index whose file may have *size* bytes.
        """
        return size // cls.entry_size - cls.reserved_entries

    @property
    def size_in_bytes(self) -> int:
        """
        Bytes of the entries, without the hole.
        """
        return self.entries * self.entry_size

    @property
    def last_offset_written(self) -> int | None:
        """
        The offset of the last entry in the file that is not zeros; None if all are. A crash may
        leave a hole behind the entries.
        """
        used = len(bytes(self._mapped.view[: self.size_in_bytes]).rstrip(b"\0"))
        if not used:
            return None
        at = (used - 1) // self.entry_size * self.entry_size + self.offset_at
        return self.base_offset + int.from_bytes(self._mapped.view[at : at + 4], signed=True)

    def relative_offset(self, offset: int) -> int:
        """
        Raises:
            ValueError: *offset* is below the base, or too far above.
        """
        relative = offset - self.base_offset
        if not 0 <= relative <= LARGEST_RELATIVE_OFFSET:
            raise ValueError(f"Integer overflow for offset: {offset} ({self.path})")
        return relative

    # Lookups. Each reads ``entries`` before ``view``: a view may be newer, and is then checked to
    # hold as many, but an entry that is counted is in every later view until it is truncated away.

    def _search(
        self, target: int, result: SearchResult, unpack: Unpack, shift: int
    ) -> tuple[memoryview, int]:
        entries = self.entries
        view = self._mapped.view
        width = self.entry_size
        entries = min(entries, len(view) // width)
        slot = search(view, entries, target, result, unpack=unpack, width=width, shift=shift)
        return view, slot

    def _check_slot(self, slot: int) -> None:
        if slot >= self.entries:
            raise ValueError(
                f"Attempt to fetch the {slot}th entry from index {self.path}, "
                f"which has size {self.entries}"
            )

    # Changes.

    def open_for_writing(self) -> None:
        """
        Open the file for the entries that are appended from now on, unless it is open for that.
        """
        self._mapped.open_for_writing()

    def give_back(self) -> None:
        """
        Close the descriptor for writing.
        """
        self._mapped.give_back()

    def resize(self, size: int) -> bool:
        """
        Make the file *size* bytes long, rounded down to whole entries; return whether it changed.

        The file is never cut below its entries. Kafka does not start when ``segment.index.bytes``
        was lowered below the index of an active segment.
        """
        size = max(self._rounded(size), self.size_in_bytes)
        if size == self.length:
            return False
        self._mapped.resize(size)
        self.length = size
        self.max_entries = size // self.entry_size
        self.full_at = self.max_entries - self.reserved_entries
        return True

    def trim_to_valid_size(self) -> None:
        """
        Cut off the hole.
        """
        self.resize(self.size_in_bytes)

    def truncate_to(self, offset: int) -> None:
        """
        Remove the entries whose offset is *offset* or greater.
        """
        target = offset - self.base_offset
        view, slot = self._search(
            target, SearchResult.LARGEST_LOWER_BOUND, _INT32.unpack_from, self.offset_at
        )
        if slot >= 0:
            (found,) = _INT32.unpack_from(view, slot * self.entry_size + self.offset_at)
            if found != target:
                slot += 1
        self._truncate_to_entries(max(slot, 0))

    def _truncate_to_entries(self, entries: int) -> None:
        self.entries = entries

    def truncate(self) -> None:
        """
        Remove all entries.
        """
        self._truncate_to_entries(0)

    def flush(self) -> None:
        """
        Return once the entries survive a crash of the machine. Safe from any thread.
        """
        self._mapped.flush()

    def sanity_check(self) -> None:
        """
        Raises:
            CorruptIndex: the index contradicts itself.
        """
        raise NotImplementedError

    def _check_length(self, name: str) -> None:
        if self.length % self.entry_size:
            raise CorruptIndex(
                f"{name} file {self.path} is corrupt, found {self.length} bytes which is neither "
                f"positive nor a multiple of {self.entry_size}",
                path=self.path,
            )

    def close(self) -> None:
        """
        Cut off the hole and close the file.
        """
        self.trim_to_valid_size()
        self._mapped.close()

    def close_handler(self) -> None:
        """
        Close the file without writing, as the disk has failed.
        """
        self._mapped.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.path} entries={self.entries}/{self.max_entries}>"
