"""
Where the fields of many records are: by a compiled walk over them, or by array operations.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

import numpy as np
from librt.vecs import vec
from mypy_extensions import i64

from barnabas.pipeline.decoding.arena import Arena
from barnabas.pipeline.decoding.batch_headers import Headers
from barnabas.pipeline.decoding.record_arrays import spans_by_arrays
from barnabas.pipeline.decoding.record_walk import COMPILED, RecordFields
from barnabas.pipeline.decoding.spans import Fields, RecordSpans, Spans
from barnabas.pipeline.decoding.varint_columns import Ints, MalformedRecords

if TYPE_CHECKING:
    from mypy_extensions import u8

SMALLEST_RECORD: Final = 7
"""Bytes of a record without key, value and headers, with its length."""
_KEPT_RECORDS: Final = 1 << 16
"""For so many, the memory of what was found is used again."""


def find_records(arena: Arena, headers: Headers, wanted: Fields) -> RecordSpans:
    """
    The records of some batches, one after the other.

    Args:
        headers: of the batches in the arena.

    Raises:
        MalformedRecords: the records of a batch do not fill it exactly, or one is not as long as
            it says.
        IndexError: they are not inside the arena.
    """
    counts = headers["record_count"]
    if len(counts) and (counts.min() < 0 or int(counts.sum()) * SMALLEST_RECORD > len(arena.raw)):
        # So many are not even made room for.
        raise MalformedRecords
    return _find(arena, headers, wanted)


class _Kept(threading.local):
    """
    Arrays that a thread uses again: they stay in its caches, and need not be filled with zeros.
    """

    def __init__(self) -> None:
        self._fields = RecordFields(0)

    def fields(self, records: int) -> RecordFields:
        if records <= self._fields.capacity:
            return self._fields
        fields = RecordFields(records)
        if records <= _KEPT_RECORDS:
            self._fields = fields
        return fields


_kept = _Kept()


def spans_by_walk(arena: Arena, headers: Headers, wanted: Fields) -> RecordSpans:
    """
    As ``find_records``. All of a record is looked at, whatever is asked for.
    """
    counts = headers["record_count"]
    count = int(counts.sum())
    fields = _kept.fields(count)
    of_batches = np.empty((len(headers), 5), np.int64)
    of_batches[:, 0] = arena.starts
    of_batches[:, 1] = arena.ends
    of_batches[:, 2] = counts
    of_batches[:, 3] = headers["base_offset"]
    of_batches[:, 4] = headers["base_timestamp"]
    if not fields.walk(arena.raw, vec[i64](of_batches.reshape(-1)), headers=wanted.headers):
        raise MalformedRecords
    headers_count = count if wanted.headers else 0
    return RecordSpans(
        _array(fields.record_ends, count),
        _array(fields.timestamps, count),
        _array(fields.offsets, count),
        _spans(fields.key_views, fields.key_valid, count),
        _spans(fields.value_views, fields.value_valid, count),
        _array(fields.header_counts, headers_count),
        _array(fields.headers_at, headers_count),
    )


def _spans(views: vec[i64], valid: vec[u8], count: int) -> Spans:
    return Spans(_array(views, 2 * count), np.frombuffer(memoryview(valid), np.bool_, count))


def _array(numbers: vec[i64], count: int) -> Ints:
    return np.frombuffer(memoryview(numbers), np.int64, count)


_find = spans_by_walk if COMPILED else spans_by_arrays
