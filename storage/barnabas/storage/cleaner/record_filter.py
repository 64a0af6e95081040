"""
The two walks of the cleaner along the records of a batch: for their keys, and for those that stay.
Until when tombstones and markers stay (``delete.retention.ms``), ``batch_filter`` decides.

A batch of a megabyte may hold a hundred thousand records. While compiled code runs, no other thread
does. So a walk has steps of a limited number of records, and the caller lets other threads run
between two steps.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.protocol.records.varints import append_varint
from barnabas.protocol.records.walk import RecordWalk
from barnabas.storage.cleaner.offset_map import OffsetMap

if TYPE_CHECKING:
    from mypy_extensions import i64

BY_KEY: Final = 0
"""A record stays if it is the last of its key."""
ALL: Final = 1
"""Every record stays."""
NONE: Final = 2
"""No record stays; they are only counted and checked."""

_ONE_BYTE: Final = [bytes((number,)) for number in range(256)]


class KeyIndexer(RecordWalk):
    """
    Puts the keys of a batch into an offset map.
    """

    def __init__(
        self,
        data: bytes,
        position: i64,
        end: i64,
        record_count: i64,
        *,
        base_offset: i64,
        offset_map: OffsetMap,
        start_offset: i64,
        most_keys: i64,
    ) -> None:
        """
        Args:
            start_offset: keys of records below are left out.
            most_keys: how many the map may hold.
        """
        super().__init__(data, position, end, record_count)
        self.is_full: bool = False
        """Whether a key found no room; it and the later ones were not added."""
        self._base_offset: i64 = base_offset
        self._map = offset_map
        self._start_offset: i64 = start_offset
        self._most_keys: i64 = most_keys

    @property
    def messages_read(self) -> int:
        """
        The number of records whose keys were added.
        """
        return self.walked - 1 if self.is_full else self.walked

    def step(self, records: i64) -> bool:
        """
        Add the keys of up to *records* records; return whether this was the last step.

        Raises:
            InvalidRecord: a record is not one.
        """
        left: i64 = records
        offset_map = self._map
        while self.walked < self.record_count:
            if left == 0:
                return False
            left -= 1
            self.advance()
            offset: i64 = self._base_offset + self.offset_delta
            if self.key_length >= 0 and offset >= self._start_offset:
                if offset_map.size >= self._most_keys:
                    self.is_full = True
                    return True
                offset_map.put(self.data[self.key_at : self.key_at + self.key_length], offset)
        return True


class RecordFilter(RecordWalk):
    """
    Finds out which records of a batch stay.

    Invariants:

    1. Counts, deltas and flags are those of the kept records, which are in ``runs``.
    2. ``runs`` has positions in ``data``: the start and the end of a run of kept records by turns;
       no run touches the next one.
    """

    def __init__(
        self,
        data: bytes,
        position: i64,
        end: i64,
        record_count: i64,
        *,
        base_offset: i64,
        offset_map: OffsetMap,
        which: i64,
        keep_tombstones: bool,
    ) -> None:
        """
        Args:
            which: ``BY_KEY``, ``ALL`` or ``NONE``.
            keep_tombstones: whether the last record of a key stays if it has no value.
        """
        super().__init__(data, position, end, record_count)
        self.kept: i64 = 0
        self.invalid: i64 = 0
        """Records that are removed because they have no key."""
        self.has_tombstones: bool = False
        """Whether a kept record has no value."""
        self.all_regular: bool = True
        """Whether the bytes of the kept records are those that Kafka would write."""
        self.in_order: bool = True
        """Whether the offsets of kept records grow."""
        self.first_timestamp_delta: i64 = 0
        self.least_timestamp_delta: i64 = 0
        self.largest_timestamp_delta: i64 = 0
        self.largest_offset_delta: i64 = 0
        self.runs: list[int] = []
        self._base_offset: i64 = base_offset
        self._map = offset_map
        self._which: i64 = which
        self._keep_tombstones: bool = keep_tombstones
        self._run_start: i64 = -1

    def step(self, records: i64) -> bool:
        """
        Examine up to *records* records; return whether these were the last.

        Raises:
            InvalidRecord: a record is not one.
        """
        left: i64 = records
        while self.walked < self.record_count:
            if left == 0:
                return False
            left -= 1
            self.advance()
            if self._stays():
                self._keep()
            else:
                self._end_run(self.record_at)
        self._end_run(self.record_end)
        return True

    def _stays(self) -> bool:
        if self._which != BY_KEY:
            return self._which == ALL
        offset: i64 = self._base_offset + self.offset_delta
        if offset > self._map.latest_offset:
            return True
        if self.key_length < 0:
            self.invalid += 1
            return False
        # A tombstone that is removed in any case need not be searched.
        if not self.has_value and not self._keep_tombstones:
            return False
        if self._map.is_superseded(offset):
            return False
        latest: i64 = self._map.get(self.data[self.key_at : self.key_at + self.key_length])
        return offset >= latest

    def _keep(self) -> None:
        delta: i64 = self.timestamp_delta
        if self._run_start < 0:
            self._run_start = self.record_at
        if self.kept == 0:
            self.first_timestamp_delta = delta
            self.least_timestamp_delta = self.largest_timestamp_delta = delta
            self.largest_offset_delta = self.offset_delta
        else:
            if delta < self.least_timestamp_delta:
                self.least_timestamp_delta = delta
            elif delta > self.largest_timestamp_delta:
                self.largest_timestamp_delta = delta
            if self.offset_delta > self.largest_offset_delta:
                self.largest_offset_delta = self.offset_delta
            else:
                self.in_order = False
        self.kept += 1
        if not self.has_value:
            self.has_tombstones = True
        if not self.is_regular:
            self.all_regular = False

    def _end_run(self, position: i64) -> None:
        if self._run_start >= 0:
            self.runs.append(self._run_start)
            self.runs.append(position)
            self._run_start = -1

    def kept_records(self) -> bytes:
        """
        The kept records one after the other, just as they were.
        """
        if len(self.runs) == 2:
            return self.data[self.runs[0] : self.runs[1]]
        parts: list[bytes] = []
        for turn in range(0, len(self.runs), 2):
            parts.append(self.data[self.runs[turn] : self.runs[turn + 1]])
        return b"".join(parts)


class TimestampShift(RecordWalk):
    """
    Rewrites records whose timestamps stay while the base timestamp of their batch changes.

    The records are regular. Nothing but the timestamp delta changes, and with it the length.
    """

    def __init__(self, data: bytes, record_count: i64, shift: i64, is_fixed: bool) -> None:
        """
        Args:
            data: the records, nothing else.
            shift: added to each timestamp delta; if *is_fixed*, its new value.
        """
        super().__init__(data, 0, len(data), record_count)
        self._shift: i64 = shift
        self._is_fixed: bool = is_fixed
        self._parts: list[bytes] = []

    def step(self, records: i64) -> bool:
        """
        Write up to *records* records; return whether these were the last.
        """
        left: i64 = records
        while self.walked < self.record_count:
            if left == 0:
                return False
            left -= 1
            self.advance()
            delta: i64 = self._shift
            if not self._is_fixed:
                delta += self.timestamp_delta
            encoded: bytes = _encoded(delta)
            length: i64 = 1 + len(encoded) + self.record_end - self.tail_at
            self._parts.append(_encoded(length))
            self._parts.append(b"\0")
            self._parts.append(encoded)
            self._parts.append(self.data[self.tail_at : self.record_end])
        return True

    def records(self) -> bytes:
        """
        The records that were written.
        """
        return b"".join(self._parts)


def _encoded(number: i64) -> bytes:
    """
    *number* as a varint or varlong.
    """
    if -0x2000 <= number < 0x2000:
        raw: i64 = (number << 1) ^ (number >> 63)
        if raw < 0x80:
            return _ONE_BYTE[raw]
        return _ONE_BYTE[raw & 0x7F | 0x80] + _ONE_BYTE[raw >> 7]
    out = bytearray()
    append_varint(out, number)
    return bytes(out)
