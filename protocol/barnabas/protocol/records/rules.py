"""
The rules of a topic for the records that are appended to it.

A record may lack a key only where the log is not compacted, and its timestamp must be near the
broker's clock (KIP-937). The decisions are those of Kafka's LogValidator; sums of timestamps wrap
at 64 bits, as they do there.

This module is compiled when there is a compiler; see ``varints``.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.protocol.codec.primitives import INT64_MAX

if TYPE_CHECKING:
    from mypy_extensions import i64

MOST_RECORD_ERRORS: Final = 1 << 16
"""An answer lists no more records than this; Kafka has no limit and would run out of memory."""

_SAFE: Final = 1 << 61
"""Timestamps within this can be added and subtracted without care."""


class RejectedRecord(NamedTuple):
    """
    A record that is whole but not acceptable.
    """

    batch_index: int
    """Its number in the batch, from 0."""
    offset_delta: int
    timestamp: int
    key_size: int
    """In bytes; -1 if there is no key."""
    value_size: int
    """In bytes; -1 if there is no value."""
    lacks_key: bool
    """If not, it is the timestamp that is wrong."""
    wrong_type: bool
    """The batch claims LogAppendTime where it may not; else the timestamp is out of range."""


class RecordRules:
    """
    The demands of one topic at one moment.

    Where ``create_time`` holds, timestamps must be near the broker's clock; where it does not, the
    broker will give the records theirs. In neither case may the batch claim that a broker did.
    """

    def __init__(
        self,
        *,
        keys_required: bool,
        create_time: bool,
        now_ms: int = 0,
        before_max_ms: int = 0,
        after_max_ms: int = 0,
    ) -> None:
        self.keys_required = keys_required
        self.create_time = create_time
        self.now_ms: i64 = now_ms
        self.before_max_ms: i64 = before_max_ms
        self.after_max_ms: i64 = after_max_ms


class RecordJudge:
    """
    Applies the rules to the records of one batch, in order.

    Invariants:

    1. A record that has its key, if it needs one, and whose timestamp delta lies between
       ``lowest_delta`` and ``highest_delta``, is good and need not be shown to ``judge``.
    2. All others are shown, once each; those that are not good are in ``errors``.

    Args:
        base_timestamp: from which the deltas count.
        log_append_time: the max timestamp of a batch that claims LogAppendTime: the timestamp of
            all its records. None for a batch of CreateTime.
        rules: None to find all records good.
    """

    def __init__(
        self, base_timestamp: int, log_append_time: int | None, rules: RecordRules | None
    ) -> None:
        self.errors: list[RejectedRecord] = []
        self.max_timestamp: i64 = -1
        """The largest that was shown to ``judge``, or that of a batch of LogAppendTime."""
        self.max_index: i64 = -1
        self.keys_required = False
        self._base: i64 = base_timestamp
        self._fixed = log_append_time is not None
        self._fixed_timestamp: i64 = -1 if log_append_time is None else log_append_time
        self._judged = rules is not None
        self._limited = False
        self._now: i64 = 0
        self._before: i64 = 0
        self._after: i64 = 0
        if rules is not None:
            self.keys_required = rules.keys_required
            self._limited = rules.create_time
            self._now = rules.now_ms
            self._before = rules.before_max_ms
            self._after = rules.after_max_ms
        self.lowest_delta: i64 = 1
        self.highest_delta: i64 = 0
        self.least_delta: i64 = INT64_MAX
        """A good delta above it leads to a timestamp that is larger than -1."""
        if self._fixed:
            self._accept_fixed_timestamp()
        elif -_SAFE < self._base < _SAFE and -_SAFE < self._now < _SAFE:
            self._accept_deltas()

    def _accept_fixed_timestamp(self) -> None:
        """
        If the one timestamp is good, all deltas are; if not, every record has to be shown.
        """
        if not self._is_wrong(self._fixed_timestamp):
            self.lowest_delta = -INT64_MAX - 1
            self.highest_delta = INT64_MAX
            if self._fixed_timestamp > -1:
                self.max_timestamp = self._fixed_timestamp
                self.max_index = 0

    def _accept_deltas(self) -> None:
        """
        Find the deltas that lead to good timestamps without any sum that could wrap.
        """
        lowest: i64 = -_SAFE
        highest: i64 = _SAFE
        if self._limited:
            if self._before < _SAFE:
                lowest = self._now - self._before
            if self._after < _SAFE:
                highest = self._now + self._after
        self.lowest_delta = lowest - self._base
        self.highest_delta = highest - self._base
        self.least_delta = -1 - self._base

    def judge(
        self, index: i64, delta: i64, offset_delta: i64, key_size: i64, value_size: i64
    ) -> None:
        """
        Look at the record with number *index*, and note it if it is not good.
        """
        timestamp: i64 = self._fixed_timestamp if self._fixed else wrapping_sum(self._base, delta)
        if timestamp > self.max_timestamp:
            self.max_timestamp = timestamp
            self.max_index = index
        lacks_key: bool = key_size < 0 and self.keys_required
        if not lacks_key and not self._is_wrong(timestamp):
            return
        if len(self.errors) < MOST_RECORD_ERRORS:
            wrong_type: bool = not lacks_key and (not self._limited or timestamp == -1)
            self.errors.append(
                RejectedRecord(
                    index, offset_delta, timestamp, key_size, value_size, lacks_key, wrong_type
                )
            )

    def _is_wrong(self, timestamp: i64) -> bool:
        if self._limited and timestamp != -1:
            age: i64 = wrapping_difference(self._now, timestamp)
            return age > self._before or wrapping_difference(0, age) > self._after
        return self._fixed and self._judged


def wrapping_sum(a: i64, b: i64) -> i64:
    """
    The sum, modulo 2**64, without leaving 64 bits on the way.
    """
    if b > 0 and a > INT64_MAX - b:
        return (a - INT64_MAX - 1) + (b - INT64_MAX - 1)
    if b < 0 and a < -INT64_MAX - 1 - b:
        return (a + INT64_MAX + 1) + (b + INT64_MAX + 1)
    return a + b


def wrapping_difference(a: i64, b: i64) -> i64:
    """
    The difference, modulo 2**64, without leaving 64 bits on the way.
    """
    return wrapping_sum(wrapping_sum(a, -1 - b), 1)
