"""
Where the fields of many records are.

Where a record begins, only the one before it tells. But the batches of a chunk can be walked side
by side: a step reads the length of the i-th record of every batch at once. Where batches are few
and large, a plain loop over the lengths is quicker, and where that is compiled nearly always. As
soon as all starts are known, each field of all records is a matter of a few array operations.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from barnabas.pipeline.record_positions import COMPILED, note_records
from barnabas.pipeline.varint_columns import (
    VARLONG_BYTES,
    Bytes,
    Ints,
    Malformed,
    read_raw,
    signed,
)

SMALLEST_RECORD: Final = 7
"""Bytes of a record without key, value and headers, with its length."""

_BATCH_NS: Final = 500
_RECORD_NS: Final = 60 if COMPILED else 200
"""What the loop takes about, of a batch and of each of its records."""
_STEP_NS: Final = 25_000
_RECORD_IN_STEP_NS: Final = 60
"""What a step over all batches takes, and of each record in it."""


class Spans(NamedTuple):
    """
    Pieces of a buffer; one whose length is negative is null.
    """

    starts: Ints
    lengths: Ints

    def take(self, rows: Ints) -> Spans:
        return Spans(self.starts[rows], self.lengths[rows])


class HeaderSpans(NamedTuple):
    """
    The headers of all records one after the other, and how many each record has.
    """

    counts: Ints
    names: Spans
    values: Spans


NO_SPANS: Final = Spans(np.empty(0, np.int64), np.empty(0, np.int64))


class RecordSpans(NamedTuple):
    """
    The fields of records. What was not asked for is empty.
    """

    timestamp_deltas: Ints
    offset_deltas: Ints
    keys: Spans
    values: Spans
    header_counts: Ints
    headers_at: Ints
    """Where the first header of each record begins, if it has one."""

    def take(self, rows: Ints) -> RecordSpans:
        """
        Those of the records number *rows*.
        """
        has_headers = len(self.header_counts) > 0
        return RecordSpans(
            self.timestamp_deltas[rows],
            self.offset_deltas[rows],
            self.keys.take(rows) if len(self.keys.starts) else NO_SPANS,
            self.values.take(rows) if len(self.values.starts) else NO_SPANS,
            self.header_counts[rows] if has_headers else self.header_counts,
            self.headers_at[rows] if has_headers else self.headers_at,
        )


def record_starts(
    raw: bytes, data: Bytes, starts: Ints, ends: Ints, counts: Ints
) -> tuple[Ints, Ints]:
    """
    Where each record begins, behind its length, and where it ends.

    Args:
        raw: the bytes that *data* are the array of.
        starts: where the records of each batch begin; they end at *ends*.
        counts: records of each batch.

    Raises:
        Malformed: the records of a batch do not fill it exactly.
        IndexError: they are not inside *data*.
    """
    if not len(counts):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    if np.any(counts < 0) or np.any(counts * SMALLEST_RECORD > ends - starts):
        raise Malformed
    records = int(counts.sum())
    loop_ns = len(counts) * _BATCH_NS + records * _RECORD_NS
    if int(counts.max()) * _STEP_NS + records * _RECORD_IN_STEP_NS < loop_ns:
        at = _side_by_side(data, starts, ends, counts)
    else:
        at = _one_by_one(raw, starts, ends, counts)
    lengths = read_raw(data, at) >> 1
    return at, at + lengths


def _side_by_side(data: Bytes, starts: Ints, ends: Ints, counts: Ints) -> Ints:
    """
    Where the length of each record is.
    """
    slots = np.cumsum(counts) - counts
    # Largest batches first, so that those still under way are always the first ones.
    order = np.argsort(-counts, kind="stable")
    at, slots, falling = starts[order], slots[order], -counts[order]
    found = np.empty(int(counts.sum()), np.int64)
    lives = np.searchsorted(falling, -np.arange(int(counts.max())), side="left")
    for step, live in enumerate(lives.tolist()):
        here = at[:live]
        found[slots[:live] + step] = here
        raw = read_raw(data, here)
        if np.any(raw & 1):
            raise Malformed
        here += raw >> 1
    if np.any(at != ends[order]):
        raise Malformed
    return found


def _one_by_one(raw: bytes, starts: Ints, ends: Ints, counts: Ints) -> Ints:
    """
    The same where batches are few, or the loop is compiled.
    """
    found: list[int] = []
    for start, end, count in zip(starts.tolist(), ends.tolist(), counts.tolist(), strict=True):
        if not note_records(raw, start, end, count, found):
            raise Malformed
    return np.array(found, np.int64)


def record_spans(
    data: Bytes, record_at: Ints, record_end: Ints, *, keys: bool, values: bool, headers: bool
) -> RecordSpans:
    """
    The fields of the records that begin, behind their lengths, at *record_at*.

    Nothing is read behind the last field that is asked for.

    Raises:
        Malformed: a record is not as long as it says, or a number is none.
        IndexError: a field is not inside *data*.
    """
    at = record_at + 1  # Behind the attributes, of which nothing is defined.
    timestamp_deltas = signed(read_raw(data, at, VARLONG_BYTES))
    offset_deltas = signed(read_raw(data, at))
    key_spans = _nullable(data, at) if keys or values or headers else NO_SPANS
    value_spans = _nullable(data, at) if values or headers else NO_SPANS
    if np.any(at > record_end):
        raise Malformed
    if not headers:
        counts = headers_at = NO_SPANS.starts
    else:
        counts, headers_at = _header_counts(data, at, record_end), at
    return RecordSpans(timestamp_deltas, offset_deltas, key_spans, value_spans, counts, headers_at)


def _header_counts(data: Bytes, at: Ints, record_end: Ints) -> Ints:
    raw = read_raw(data, at)
    counts = raw >> 1
    ends_here = at == record_end
    if np.any(raw & 1) or np.any(counts > record_end - at) or np.any((counts == 0) != ends_here):
        raise Malformed
    return counts


def _nullable(data: Bytes, at: Ints) -> Spans:
    raw = read_raw(data, at)
    lengths = signed(raw)
    starts = at.copy()
    at += np.maximum(lengths, 0)
    return Spans(starts, lengths)


def header_spans(data: Bytes, headers_at: Ints, counts: Ints, record_end: Ints) -> HeaderSpans:
    """
    The headers of all records: the first ones of all records at once, then the second ones.

    Args:
        headers_at: where the first header of each record begins, if it has one.

    Raises:
        Malformed: a record is not as long as it says, or a header has no name.
        IndexError: a header is not inside *data*.
    """
    total = int(counts.sum())
    names = Spans(np.empty(total, np.int64), np.empty(total, np.int64))
    values = Spans(np.empty(total, np.int64), np.empty(total, np.int64))
    first_slots = np.cumsum(counts) - counts
    live: npt.NDArray[np.intp] = np.flatnonzero(counts > 0)
    at = headers_at[live]
    step = 0
    while len(live):
        slots = first_slots[live] + step
        for spans in (names, values):
            found = _nullable(data, at)
            spans.starts[slots] = found.starts
            spans.lengths[slots] = found.lengths
        step += 1
        over = counts[live] == step
        if np.any(at[over] != record_end[live[over]]):
            raise Malformed
        live, at = live[~over], at[~over]
    if np.any(names.lengths < 0):
        raise Malformed
    return HeaderSpans(counts, names, values)
