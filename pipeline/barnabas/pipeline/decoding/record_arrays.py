"""
Where the fields of many records are, found by array operations.

Where a record begins, only the one before it tells. But the batches of a chunk can be walked side
by side: a step reads the length of the i-th record of every batch at once. Where batches are few
and large, a plain loop over the lengths is quicker. As soon as all starts are known, each field of
all records is a matter of a few array operations.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from barnabas.pipeline.decoding.arena import Arena
from barnabas.pipeline.decoding.batch_headers import Headers
from barnabas.pipeline.decoding.record_positions import note_records
from barnabas.pipeline.decoding.spans import (
    NO_RECORDS,
    NO_SPANS,
    Fields,
    HeaderSpans,
    RecordSpans,
    Spans,
)
from barnabas.pipeline.decoding.varint_columns import (
    VARLONG_BYTES,
    Bytes,
    Ints,
    MalformedRecords,
    read_raw,
    signed,
)

_BATCH_NS: Final = 500
_RECORD_NS: Final = 200
"""What the loop takes about, of a batch and of each of its records."""
_STEP_NS: Final = 25_000
_RECORD_IN_STEP_NS: Final = 60
"""What a step over all batches takes, and of each record in it."""


def spans_by_arrays(arena: Arena, headers: Headers, wanted: Fields) -> RecordSpans:
    """
    As ``find_records``. Nothing is read behind the last field that is asked for.
    """
    if not len(headers):
        return NO_RECORDS
    data = arena.data
    counts = headers["record_count"]
    at = _record_starts(arena, data, counts)
    record_ends = (read_raw(data, at) >> 1) + at
    spans = _fields(data, at, record_ends, wanted)
    spans.timestamps[:] += np.repeat(headers["base_timestamp"], counts)
    spans.offsets[:] += np.repeat(headers["base_offset"], counts)
    return spans


def _record_starts(arena: Arena, data: Bytes, counts: Ints) -> Ints:
    records = int(counts.sum())
    loop_ns = len(counts) * _BATCH_NS + records * _RECORD_NS
    if int(counts.max()) * _STEP_NS + records * _RECORD_IN_STEP_NS < loop_ns:
        return _side_by_side(data, arena.starts, arena.ends, counts)
    return _one_by_one(arena, counts)


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
            raise MalformedRecords
        here += raw >> 1
    if np.any(at != ends[order]):
        raise MalformedRecords
    return found


def _one_by_one(arena: Arena, counts: Ints) -> Ints:
    """
    The same where batches are few.
    """
    found: list[int] = []
    spans = zip(arena.starts.tolist(), arena.ends.tolist(), counts.tolist(), strict=True)
    for start, end, count in spans:
        if not note_records(arena.raw, start, end, count, found):
            raise MalformedRecords
    return np.array(found, np.int64)


def _fields(data: Bytes, record_at: Ints, record_ends: Ints, wanted: Fields) -> RecordSpans:
    """
    Of the records that begin, behind their lengths, at *record_at*; timestamps and offsets are
    those within their batches.
    """
    keys, values, headers = wanted
    at = record_at + 1  # Behind the attributes, of which nothing is defined.
    timestamps = signed(read_raw(data, at, VARLONG_BYTES))
    offsets = signed(read_raw(data, at))
    key_spans = Spans.of(data, *_nullable(data, at)) if keys or values or headers else NO_SPANS
    value_spans = Spans.of(data, *_nullable(data, at)) if values or headers else NO_SPANS
    if np.any(at > record_ends):
        raise MalformedRecords
    if not headers:
        counts = headers_at = np.empty(0, np.int64)
    else:
        counts, headers_at = _header_counts(data, at, record_ends), at
    return RecordSpans(record_ends, timestamps, offsets, key_spans, value_spans, counts, headers_at)


def _header_counts(data: Bytes, at: Ints, record_ends: Ints) -> Ints:
    raw = read_raw(data, at)
    counts = raw >> 1
    ends_here = at == record_ends
    if np.any(raw & 1) or np.any(counts > record_ends - at) or np.any((counts == 0) != ends_here):
        raise MalformedRecords
    return counts


def _nullable(data: Bytes, at: Ints) -> tuple[Ints, Ints]:
    """
    Where the bytes begin that a length stands before, and that length; *at* is moved behind them.
    """
    raw = read_raw(data, at)
    lengths = signed(raw)
    starts = at.copy()
    at += np.maximum(lengths, 0)
    return starts, lengths


def header_spans(data: Bytes, headers_at: Ints, counts: Ints, record_end: Ints) -> HeaderSpans:
    """
    The headers of all records: the first ones of all records at once, then the second ones.

    Args:
        headers_at: where the first header of each record begins, if it has one.

    Raises:
        MalformedRecords: a record is not as long as it says, or a header has no name.
        IndexError: a header is not inside *data*.
    """
    total = int(counts.sum())
    names = np.empty(total, np.int64), np.empty(total, np.int64)
    values = np.empty(total, np.int64), np.empty(total, np.int64)
    first_slots = np.cumsum(counts) - counts
    live: npt.NDArray[np.intp] = np.flatnonzero(counts > 0)
    at = headers_at[live]
    step = 0
    while len(live):
        slots = first_slots[live] + step
        for starts, lengths in (names, values):
            starts[slots], lengths[slots] = _nullable(data, at)
        step += 1
        over = counts[live] == step
        if np.any(at[over] != record_end[live[over]]):
            raise MalformedRecords
        live, at = live[~over], at[~over]
    if np.any(names[1] < 0):
        raise MalformedRecords
    return HeaderSpans(counts, Spans.of(data, *names), Spans.of(data, *values))
