"""
The walk over the records of a produced batch.

A broker looks at every record that it is given: whether it is whole, has a key where one is needed,
and a timestamp near enough to the present. ``RecordScan`` does so without an object per record and
without having the records in memory: it takes them in windows, reads the numbers and passes over
keys and values. A batch that decompresses to a terabyte takes its time, but no space.

::

    bytes of the batch      |-----------------------------------------------------------|
    window given to feed       |----------------|
    what feed has done with    |--------------|            the last number is cut: the next
                                                           window begins there
    or                         |------------------------|  the rest of a value need not be seen:
                                                           the next window begins behind it

Whole, regular records in the window are the fast path: one loop, no calls. Whatever is irregular
goes through ``_step``, number by number, and only there it is decided what is an error.

What is an error is Kafka's decision (DefaultRecord, DefaultRecordBatch): a negative length of a key
or value means that there is none, whichever it is, and attributes are not looked at. Whether a good
record is acceptable, ``record_rules`` say.

This module is compiled when there is a compiler; see ``varints``.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from barnabas.protocol.records.rules import RecordJudge, RecordRules, RejectedRecord
from barnabas.protocol.records.varints import CUT, TOO_LONG, next_varint, next_varlong

if TYPE_CHECKING:
    from mypy_extensions import i64

WINDOW_BYTES: Final = 64 * 1024
SMALLEST_WINDOW_BYTES: Final = 5 + 1 + 10 + 5 + 5
"""The numbers in front of a key, at their longest, are read together."""

_START: Final = 0
_VALUE: Final = 1
_HEADER_COUNT: Final = 2
_HEADER_NAME: Final = 3
_HEADER_VALUE: Final = 4

ENDLESS_LENGTH: Final = "the length of a record is too long a number"
_ENDS_EARLY: Final = "the records end early"


class RecordScan:
    """
    One walk over the records of one batch, and its result.

    Invariants:

    1. ``count`` records were found whole, and all that is said is about them.
    2. Between two calls of ``feed`` the walk stands between two numbers, never within one.
    3. Once ``malformed`` has a reason, nothing is walked any more.

    Args:
        record_count: as the batch has it. Of a batch of none, nothing is looked at.
        base_timestamp: as the batch has it.
        log_append_time: the max timestamp of a batch that claims LogAppendTime: the timestamp of
            all its records. None for a batch of CreateTime.
        rules: None to take all records that are whole.
        exact: whether a record must be as long as it says. Kafka lets this pass in a compressed
            batch which it keeps as it is, because it does not look.
    """

    def __init__(
        self,
        record_count: int,
        base_timestamp: int,
        *,
        log_append_time: int | None = None,
        rules: RecordRules | None = None,
        exact: bool = True,
    ) -> None:
        self.malformed: str = ""
        """Why the records are no records, or nothing."""
        self.count: i64 = 0
        """Records walked."""
        self.consecutive: bool = True
        """Whether the offset deltas are 0, 1, 2, ..."""
        self.null_keys: i64 = 0
        """Records without a key."""
        self.size: i64 = 0
        """Bytes of the records, decompressed."""
        self.first_timestamp_delta: i64 = 0
        self._record_count: i64 = record_count
        self._base: i64 = base_timestamp
        self._judge = RecordJudge(base_timestamp, log_append_time, rules)
        self._exact = exact
        self._max_delta: i64 = self._judge.least_delta
        self._max_delta_index: i64 = -1
        self._gaps: i64 = 0
        self._gaps_from: i64 = 0
        self._last_delta: i64 = -1
        self._falls = False
        self._stage: i64 = _START
        self._left: i64 = 0
        self._delta: i64 = 0
        self._offset_delta: i64 = 0
        self._key_length: i64 = 0
        self._value_length: i64 = 0
        self._headers_left: i64 = 0
        self._cut = False
        if record_count < 0:
            self.malformed = f"a batch cannot have {record_count} records"

    @property
    def done(self) -> bool:
        """
        Whether all records were walked, or no more can be.
        """
        return self.count >= self._record_count or self.malformed != ""

    @property
    def ascending(self) -> bool:
        """
        Whether each offset delta is larger than the one before, as also after compaction.
        """
        # A delta that is ahead of its record's number stays ahead if none falls.
        return not self._falls and (self._gaps == 0 or self._gaps == self.count - self._gaps_from)

    @property
    def last_offset_delta(self) -> int:
        """
        The offset delta of the last record, if they are ascending; -1 if there is no record.
        """
        return self._last_delta if self._gaps else self.count - 1

    @property
    def max_timestamp(self) -> int:
        """
        The largest timestamp of a record, in ms; -1 if none has one that is larger.
        """
        return self._greatest()[0]

    @property
    def max_timestamp_index(self) -> int:
        """
        The number of the first record that has the largest timestamp, or -1.
        """
        return self._greatest()[1]

    def _greatest(self) -> tuple[int, int]:
        judge = self._judge
        if self.count == 0:
            return -1, -1
        if self._max_delta_index < 0 or judge.max_timestamp > self._base + self._max_delta:
            return judge.max_timestamp, judge.max_index
        return self._base + self._max_delta, self._max_delta_index

    @property
    def errors(self) -> list[RejectedRecord]:
        """
        The records that are not acceptable, in order, up to ``MOST_RECORD_ERRORS``.
        """
        return self._judge.errors

    def walk(self, payload: memoryview, window_bytes: int = WINDOW_BYTES) -> None:
        """
        Walk records that are not compressed.

        Args:
            window_bytes: looked at together, at least ``SMALLEST_WINDOW_BYTES``.
        """
        position: i64 = 0
        size: i64 = len(payload)
        while not self.done:
            window = bytes(payload[position : position + window_bytes])
            used: i64 = 0
            if self._stage == _START:
                used = self._walk_regular(window, 0, len(window))
            if used == 0:
                used = self.feed(window)
            position += used
            if self.malformed == "" and (used == 0 or position > size):
                self.malformed = _ENDS_EARLY
        self._finish(position, size)

    def walk_chunks(self, chunks: Iterable[bytes]) -> None:
        """
        Walk records that come in pieces, of any size but 0, as a decompressor gives them.
        """
        position: i64 = 0
        size: i64 = 0
        rest = b""
        for chunk in chunks:
            length: i64 = len(chunk)
            size += length
            if position >= size:
                continue
            if self.done:
                break
            data = chunk
            at: i64 = length - (size - position)
            if at < 0 and length > SMALLEST_WINDOW_BYTES:
                # Numbers that the end of the last chunk has cut: only they are joined, for to copy
                # a chunk takes longer than to walk along it.
                at += self.feed(rest + chunk[:SMALLEST_WINDOW_BYTES])
            if at < 0 and not self.done:
                data = rest + chunk
                at = 0
            at = self.feed(data, at)
            position = size - len(data) + at
            rest = data[at:]
            # As Kafka reads a stream: what is wrong with it further on comes too late.
            if self.done and (self.malformed != "" or position < size):
                break
        if not self.done or position > size:
            self.malformed = self.malformed or _ENDS_EARLY
        self._finish(position, size)

    def _finish(self, position: i64, size: i64) -> None:
        self.size = position
        if self.malformed == "" and self._record_count > 0 and position < size:
            self.malformed = "bytes are left behind the last record"

    def feed(self, data: bytes, position: i64 = 0) -> i64:
        """
        Walk over *data* from *position* on; returns the end of the walk.

        Returns:
            Less than there is in *data* if the last number is cut; more, if what follows *data*
            belongs to a key or a value. The next call goes on there.
        """
        end: i64 = len(data)
        self._cut = False
        while position < end and not self.done:
            if self._stage == _START:
                position = self._walk_regular(data, position, end)
                if self.count >= self._record_count or position >= end:
                    break
            position = self._step(data, position, end)
            if self._cut:
                break
        return position

    def _walk_regular(  # noqa: C901, PLR0912, PLR0915 - a call per record costs more than the record
        self, data: bytes, position: i64, end: i64
    ) -> i64:
        """
        Walk records that are whole and regular, and stop in front of the first that is not.
        """
        # Twice the number of records: the raw form of the next offset delta, if it is consecutive.
        expected: i64 = 2 * self.count
        last: i64 = 2 * self._record_count
        judge = self._judge
        lowest: i64 = judge.lowest_delta
        highest: i64 = judge.highest_delta
        max_delta: i64 = self._max_delta
        max_delta_at: i64 = -1
        null_keys: i64 = self.null_keys
        keys_required: bool = judge.keys_required
        last_start: i64 = end - SMALLEST_WINDOW_BYTES
        while expected < last and position <= last_start:
            at: i64 = position + 1
            length: i64 = data[position]
            if length > 0x7F:
                more: i64 = data[at]
                length += (more << 7) - 0x80
                at += 1
                if length > 0x3FFF:
                    length, at = next_varint(data, position, end)
                    length <<= 1
            record_end: i64 = at + (length >> 1)
            if length & 1 or at < 0 or record_end > end:
                break

            # Nothing is defined about the attributes: they are passed over.
            at += 2
            delta: i64 = data[at - 1]
            if delta > 0x7F:
                more = data[at]
                delta += (more << 7) - 0x80
                at += 1
            if delta > 0x3FFF:
                delta, at = next_varlong(data, at - 2, end)
                if at < 0:
                    break
            else:
                delta = (delta >> 1) ^ -(delta & 1)

            offset_delta: i64 = data[at]
            at += 1
            if offset_delta > 0x7F:
                more = data[at]
                offset_delta += (more << 7) - 0x80
                at += 1
                if offset_delta > 0x3FFF:
                    offset_delta, at = next_varint(data, at - 2, end)
                    if at < 0 or offset_delta < 0:
                        break
                    offset_delta <<= 1

            key_length: i64 = data[at]
            at += 1
            if key_length > 0x7F:
                more = data[at]
                key_length += (more << 7) - 0x80
                at += 1
                if key_length > 0x3FFF:
                    break
            if key_length & 1 == 0:
                at += key_length >> 1
            if at >= record_end:
                break

            length = data[at]
            at += 1
            if length > 0x7F and at < record_end:
                more = data[at]
                length += (more << 7) - 0x80
                at += 1
                if length > 0x3FFF:
                    length, at = next_varint(data, at - 2, end)
                    if at < 0 or length < 0:
                        break
                    length <<= 1
            if length & 1 == 0:
                at += length >> 1

            if (at + 1 != record_end or data[at]) and (
                at >= record_end or _pass_headers(data, at, record_end) != record_end
            ):
                break

            if expected == 0:
                self.first_timestamp_delta = delta
            if offset_delta != expected:
                self._note_gap(expected >> 1, (offset_delta >> 1) ^ -(offset_delta & 1))
            if key_length & 1:
                null_keys += 1
            if delta < lowest or delta > highest or (keys_required and key_length & 1):
                offset_delta = (offset_delta >> 1) ^ -(offset_delta & 1)
                judge.judge(
                    expected >> 1,
                    delta,
                    offset_delta,
                    (key_length >> 1) ^ -(key_length & 1),
                    (length >> 1) ^ -(length & 1),
                )
            elif delta > max_delta:
                max_delta = delta
                max_delta_at = expected
            expected += 2
            position = record_end
        self.count = expected >> 1
        self.null_keys = null_keys
        if max_delta_at >= 0:
            self._max_delta = max_delta
            self._max_delta_index = max_delta_at >> 1
        return position

    def _note_gap(self, index: i64, offset_delta: i64) -> None:
        """
        Remember a record whose offset delta is not its number in the batch.
        """
        if self._gaps == 0:
            self.consecutive = False
            self._gaps_from = index
            self._last_delta = index - 1
        if offset_delta <= self._last_delta:
            self._falls = True
        self._last_delta = offset_delta
        self._gaps += 1

    def _step(  # noqa: C901 - one stage after the other
        self, data: bytes, position: i64, end: i64
    ) -> i64:
        """
        Read the numbers up to the next key or value, and pass over that.

        Sets ``_cut`` and stays where it is, if *data* do not hold all of the numbers.
        """
        at: i64 = 0
        value: i64 = 0
        if self._stage == _START:
            at = self._start(data, position, end)
            value = self._key_length
        else:
            value, at = next_varint(data, position, end)
            if at >= 0:
                self._left -= at - position
        if at < 0:
            if at == CUT:
                self._cut = True
            else:
                self.malformed = self.malformed or "a number is too long"
            return position
        if self._stage == _VALUE:
            self._value_length = value
        elif self._stage == _HEADER_COUNT:
            self._headers_left = value
            if value < 0 or (self._exact and value > max(self._left, 0)):
                self.malformed = f"a record cannot have {value} headers"
            value = 0
        elif self._stage == _HEADER_NAME and value < 0:
            self.malformed = "a header has no name"
        elif self._stage == _HEADER_VALUE:
            self._headers_left -= 1
        if value > 0:
            at += value
            self._left -= value
        self._enter_next_stage()
        return at

    def _start(self, data: bytes, position: i64, end: i64) -> i64:
        """
        Read the numbers in front of a key; all or none of them.
        """
        length, at = next_varint(data, position, end)
        if at < 0:
            if at == TOO_LONG:
                self.malformed = ENDLESS_LENGTH
            return at
        start = at
        self._delta, at = next_varlong(data, start + 1, end)
        if at < 0:
            return at
        self._offset_delta, at = next_varint(data, at, end)
        if at < 0:
            return at
        self._key_length, at = next_varint(data, at, end)
        if at < 0:
            return at
        self._left = length - (at - start)
        return at

    def _enter_next_stage(self) -> None:
        if self._exact and self._left < 0:
            self.malformed = self.malformed or "a record is longer than it says"
        if self._stage < _HEADER_COUNT:
            self._stage += 1
        elif self._stage == _HEADER_NAME:
            self._stage = _HEADER_VALUE
        elif self._headers_left > 0:
            self._stage = _HEADER_NAME
        else:
            self._end_record()

    def _end_record(self) -> None:
        if self._exact and self._left != 0:
            self.malformed = self.malformed or "a record is shorter than it says"
        if self.malformed != "":
            return
        index = self.count
        delta = self._delta
        if index == 0:
            self.first_timestamp_delta = delta
        if self._offset_delta != index:
            self._note_gap(index, self._offset_delta)
        if self._key_length < 0:
            self.null_keys += 1
        judge = self._judge
        if (
            delta < judge.lowest_delta
            or delta > judge.highest_delta
            or (self._key_length < 0 and judge.keys_required)
        ):
            judge.judge(index, delta, self._offset_delta, self._key_length, self._value_length)
        elif delta > self._max_delta:
            self._max_delta = delta
            self._max_delta_index = index
        self.count += 1
        self._stage = _START


def scan_by_rules(
    record_count: int,
    base_timestamp: int,
    log_append_time: int | None,
    rules: RecordRules,
    exact: bool,
) -> RecordScan:
    """
    A ``RecordScan``, at a third of its price for who is compiled apart from it: arguments of a
    class that have names are sorted with every call.
    """
    return RecordScan(
        record_count, base_timestamp, log_append_time=log_append_time, rules=rules, exact=exact
    )


def _pass_headers(data: bytes, position: i64, end: i64) -> i64:
    """
    Where the headers end that begin with their count at *position*, or -1 if they are irregular.
    """
    count, at = next_varint(data, position, end)
    if at < 0:
        return -1
    if count < 0:
        return -1
    while count > 0:
        length, at = next_varint(data, at, end)
        if at < 0 or length < 0:
            return -1
        length, at = next_varint(data, at + length, end)
        if at < 0:
            return -1
        if length > 0:
            at += length
        count -= 1
    return at
