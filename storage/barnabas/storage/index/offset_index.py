"""
The offset index: where in the segment a batch lies.

::

    relative offset  int32   last offset of a batch, less the base offset of the segment
    position         int32   byte of the segment at which that same batch begins

Not every batch has an entry. A scan for an offset begins at the entry with the largest offset that
is not above it.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from struct import Struct
from typing import Final

from barnabas.protocol.structs import NamedTuple
from barnabas.storage.errors import CorruptIndex, InvalidOffset
from barnabas.storage.fs.interface import MappedFile
from barnabas.storage.index.base import Index
from barnabas.storage.index.search import SearchResult

ENTRY: Final = Struct(">ii")
_INT32: Final = Struct(">i")
_RELATIVE_OFFSET_AT: Final = 0
_POSITION_AT: Final = 4


class OffsetPosition(NamedTuple):
    """
    An offset, and the byte of the segment at which to look for it.
    """

    offset: int
    position: int


class OffsetIndex(Index):
    """
    Offset to position, for one segment.
    """

    __slots__ = ("last_offset",)

    entry_size = ENTRY.size

    def __init__(self, mapped: MappedFile, base_offset: int, max_index_size: int = -1) -> None:
        super().__init__(mapped, base_offset, max_index_size)
        self.last_offset = self._last_entry().offset
        """The offset of the last entry; the base offset if there is none."""

    def lookup(self, target_offset: int) -> OffsetPosition:
        """
        The entry with the largest offset up to *target_offset*, else the base offset at 0.
        """
        view, slot = self._search(
            target_offset - self.base_offset,
            SearchResult.LARGEST_LOWER_BOUND,
            _INT32.unpack_from,
            _RELATIVE_OFFSET_AT,
        )
        return OffsetPosition(self.base_offset, 0) if slot < 0 else self._parse(view, slot)

    def fetch_upper_bound_offset(
        self, fetch_offset: OffsetPosition, fetch_size: int
    ) -> OffsetPosition | None:
        """
        An entry at or behind the end of a read of *fetch_size* bytes, None if there is none.
        """
        view, slot = self._search(
            fetch_offset.position + fetch_size,
            SearchResult.SMALLEST_UPPER_BOUND,
            _INT32.unpack_from,
            _POSITION_AT,
        )
        return None if slot < 0 else self._parse(view, slot)

    def entry(self, slot: int) -> OffsetPosition:
        """
        Raises:
            ValueError: there are not that many entries.
        """
        self._check_slot(slot)
        return self._parse(self._mapped.view, slot)

    def append(self, offset: int, position: int) -> None:
        """
        Raises:
            ValueError: the index is full, or *offset* is too far from the base.
            InvalidOffset: *offset* is not larger than the last one.
        """
        entries = self.entries
        if entries >= self.max_entries:
            raise ValueError(f"Attempt to append to a full index (size = {entries}).")
        if entries and offset <= self.last_offset:
            raise InvalidOffset(
                f"Attempt to append an offset {offset} to position {entries} no larger than the "
                f"last offset appended ({self.last_offset}) to {self.path}",
                offset=offset,
            )
        self._mapped.put(entries * ENTRY.size, ENTRY.pack(self.relative_offset(offset), position))
        self.entries = entries + 1
        self.last_offset = offset

    def sanity_check(self) -> None:
        if self.entries and self.last_offset < self.base_offset:
            raise CorruptIndex(
                f"Corrupt index found, index file {self.path} has non-zero size but the last "
                f"offset is {self.last_offset} which is less than the base offset "
                f"{self.base_offset}",
                path=self.path,
            )
        self._check_length("Index")

    def _truncate_to_entries(self, entries: int) -> None:
        super()._truncate_to_entries(entries)
        self.last_offset = self._last_entry().offset

    def _last_entry(self) -> OffsetPosition:
        if not self.entries:
            return OffsetPosition(self.base_offset, 0)
        return self._parse(self._mapped.view, self.entries - 1)

    def _parse(self, view: memoryview, slot: int) -> OffsetPosition:
        relative_offset, position = ENTRY.unpack_from(view, slot * ENTRY.size)
        return OffsetPosition(self.base_offset + relative_offset, position)
