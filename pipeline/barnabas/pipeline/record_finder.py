"""
Where the fields of many records are: by a compiled walk over them, or by array operations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from barnabas.pipeline.arena import Arena
from barnabas.pipeline.record_arrays import spans_by_arrays
from barnabas.pipeline.record_fields import COMPILED, RecordFields
from barnabas.pipeline.record_spans import Fields, RecordSpans, Spans
from barnabas.pipeline.varint_columns import Ints, Malformed

if TYPE_CHECKING:
    from librt.vecs import vec
    from mypy_extensions import i32, i64, u8

SMALLEST_RECORD: Final = 7
"""Bytes of a record without key, value and headers, with its length."""


def find_records(arena: Arena, counts: Ints, wanted: Fields) -> RecordSpans:
    """
    The records of some batches, one after the other.

    Args:
        counts: records of each batch.

    Raises:
        Malformed: the records of a batch do not fill it exactly, or one is not as long as it says.
        IndexError: they are not inside the arena.
    """
    if np.any(counts < 0) or np.any(counts * SMALLEST_RECORD > arena.ends - arena.starts):
        raise Malformed
    return _find(arena, counts, wanted)


def spans_by_walk(arena: Arena, counts: Ints, wanted: Fields) -> RecordSpans:
    """
    As ``find_records``. All of a record is looked at, whatever is asked for.
    """
    fields = RecordFields(int(counts.sum()), headers=wanted.headers)
    spans = zip(arena.starts.tolist(), arena.ends.tolist(), counts.tolist(), strict=True)
    for start, end, count in spans:
        if not fields.add(arena.raw, start, end, count):
            raise Malformed
    return RecordSpans(
        _array(fields.record_ends),
        _array(fields.timestamp_deltas),
        _array(fields.offset_deltas),
        _spans(fields.key_edges, fields.key_valid),
        _spans(fields.value_edges, fields.value_valid),
        _array(fields.header_counts),
        _array(fields.headers_at),
    )


def _spans(edges: vec[i32], valid: vec[u8]) -> Spans:
    return Spans(
        np.frombuffer(memoryview(edges), np.int32), np.frombuffer(memoryview(valid), np.uint8)
    )


def _array(numbers: vec[i64]) -> Ints:
    return np.frombuffer(memoryview(numbers), np.int64)


_find = spans_by_walk if COMPILED else spans_by_arrays
