"""
The time index: the offset at which a time begins.

::

    timestamp        int64   ms since 1970
    relative offset  int32   less the base offset of the segment

An entry (T, O) means that every record later than T has an offset above O. Timestamps grow from
entry to entry though records may come in any order: an entry has the largest timestamp so far, and
the last offset of the earliest batch that contains it.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from struct import Struct
from typing import Final

from barnabas.protocol.records.batch import NO_TIMESTAMP
from barnabas.protocol.structs import NamedTuple
from barnabas.storage.errors import CorruptIndex, InvalidOffset
from barnabas.storage.fs.interface import MappedFile
from barnabas.storage.index.base import Index
from barnabas.storage.index.search import SearchResult

ENTRY: Final = Struct(">qi")
_INT64: Final = Struct(">q")
_TIMESTAMP_AT: Final = 0


class TimestampOffset(NamedTuple):
    """
    A timestamp in ms, -1 for none, and its offset.
    """

    timestamp: int
    offset: int


class TimeIndex(Index):
    """
    Timestamp to offset, for one segment.
    """

    __slots__ = ("last_entry",)

    entry_size = ENTRY.size
    offset_at = 8
    reserved_entries = 1
    """For the entry at roll or close, which is written to a full index as well."""

    def __init__(self, mapped: MappedFile, base_offset: int, max_index_size: int = -1) -> None:
        super().__init__(mapped, base_offset, max_index_size)
        self.last_entry = self._read_last_entry()
        """No timestamp, and the base offset, if there is no entry."""

    def lookup(self, target_timestamp: int) -> TimestampOffset:
        """
        The entry with the largest timestamp up to *target_timestamp*; else none at the base offset.
        """
        view, slot = self._search(
            target_timestamp, SearchResult.LARGEST_LOWER_BOUND, _INT64.unpack_from, _TIMESTAMP_AT
        )
        if slot < 0:
            return TimestampOffset(NO_TIMESTAMP, self.base_offset)
        return self._parse(view, slot)

    def entry(self, slot: int) -> TimestampOffset:
        """
        Raises:
            ValueError: there are not that many entries.
        """
        self._check_slot(slot)
        return self._parse(self._mapped.view, slot)

    def maybe_append(self, timestamp: int, offset: int, *, skip_full_check: bool = False) -> None:
        """
        Add an entry, unless the last one has the same timestamp already.

        Raises:
            ValueError: the index is full, *offset* is too far from the base, or *timestamp* is
                smaller than the last one.
            InvalidOffset: *offset* is smaller than the last one.
        """
        entries, last = self.entries, self.last_entry
        if not skip_full_check and self.is_full:
            raise ValueError(f"Attempt to append to a full time index (size = {entries}).")
        # An equal offset is no error: a segment that is closed or rolled offers its last entry
        # once more.
        if entries and offset < last.offset:
            raise InvalidOffset(
                f"Attempt to append an offset ({offset}) to slot {entries} no larger than the last "
                f"offset appended ({last.offset}) to {self.path}",
                offset=offset,
            )
        if entries and timestamp < last.timestamp:
            raise ValueError(
                f"Attempt to append a timestamp ({timestamp}) to slot {entries} no larger than the "
                f"last timestamp appended ({last.timestamp}) to {self.path}"
            )
        if timestamp <= last.timestamp:
            return
        entry = ENTRY.pack(timestamp, self.relative_offset(offset))
        if entries == self.max_entries:
            self.resize((entries + 1) * ENTRY.size)
        self._mapped.put(entries * ENTRY.size, entry)
        self.entries = entries + 1
        self.last_entry = TimestampOffset(timestamp, offset)

    def sanity_check(self) -> None:
        if self.entries and self.last_entry.timestamp < self.entry(0).timestamp:
            raise CorruptIndex(
                f"Corrupt time index found, time index file ({self.path}) has non-zero size but "
                f"the last timestamp is {self.last_entry.timestamp} which is less than the first "
                f"timestamp {self.entry(0).timestamp}",
                path=self.path,
            )
        if self.entries and self.last_entry.offset < self.base_offset:
            raise CorruptIndex(
                f"Corrupt time index found, time index file ({self.path}) has non-zero size but "
                f"the last offset is {self.last_entry.offset} which is less than the first offset "
                f"{self.base_offset}",
                path=self.path,
            )
        self._check_length("Time index")

    def _truncate_to_entries(self, entries: int) -> None:
        super()._truncate_to_entries(entries)
        self.last_entry = self._read_last_entry()

    def _read_last_entry(self) -> TimestampOffset:
        if not self.entries:
            return TimestampOffset(NO_TIMESTAMP, self.base_offset)
        return self._parse(self._mapped.view, self.entries - 1)

    def _parse(self, view: memoryview, slot: int) -> TimestampOffset:
        timestamp, relative_offset = ENTRY.unpack_from(view, slot * ENTRY.size)
        return TimestampOffset(timestamp, self.base_offset + relative_offset)
