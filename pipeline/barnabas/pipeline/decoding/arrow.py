"""
Columns of Arrow from arrays of numbers and from pieces of a buffer, without an object per row.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.pipeline.decoding.spans import HeaderSpans, Spans
from barnabas.pipeline.decoding.varint_columns import Bytes
from barnabas.pipeline.schemas import FAR_TIMESTAMP, HEADER, HEADERS, TIMESTAMP
from barnabas.storage.units import LONG_MAX

Numbers = npt.NDArray[np.integer[npt.NBitBase]]

_US_PER_MS: Final = 1000
_MOST_MS: Final = LONG_MAX // _US_PER_MS
"""The latest time, and negated the earliest: Arrow counts in us."""
_KEPT_ROWS: Final = 1 << 16
"""What is the same for all batches of so many rows is made once."""
_TO_BYTES: Final = pc.CastOptions(pa.binary())


def numbers(values: npt.ArrayLike, kind: pa.DataType) -> pa.Array:
    return pa.array(np.ascontiguousarray(values, kind.to_pandas_dtype()), kind)


def plain(values: npt.NDArray[np.int64], kind: pa.DataType) -> pa.Array:
    """
    Those *values*, one behind the other, as a *kind* of 64 bits: not copied, nor looked at.
    """
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])


def timestamps(ms: npt.NDArray[np.int64], null: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    """
    Timestamps of *ms* since 1970, also negative ones. -1 is one of them, as Spark's connector has
    it: 1 ms before 1970. What is ``are_far`` becomes the latest or earliest time.
    """
    us = np.minimum(ms, _MOST_MS)
    np.maximum(us, -_MOST_MS, out=us)
    us *= _US_PER_MS
    if null is not None:
        return pa.array(us.view("M8[us]"), TIMESTAMP, mask=null)
    # As an array of numpy's timestamps, each would be looked at whether it is none.
    return plain(us, TIMESTAMP)


def milliseconds(rows: pa.RecordBatch) -> pa.Array:
    """
    The times of records in ms, those of ``farTimestamp`` among them if that is a column.
    """
    ms = pc.divide(rows.column("timestamp").cast(pa.int64()), _US_PER_MS)
    has_far = FAR_TIMESTAMP in rows.schema.names
    return pc.coalesce(ms, rows.column(FAR_TIMESTAMP)) if has_far else ms


def are_far(ms: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """
    Return which of the times no timestamp can hold.
    """
    far: npt.NDArray[np.bool_] = (ms > _MOST_MS) | (ms < -_MOST_MS)
    return far


def constant(value: str | int, rows: int, kind: pa.DataType) -> pa.Array:
    if rows > _KEPT_ROWS:
        return pa.repeat(pa.scalar(value, kind), rows)
    return _kept(value, kind).slice(0, rows)


@lru_cache(maxsize=8)
def _kept(value: str | int, kind: pa.DataType) -> pa.Array:
    return pa.repeat(pa.scalar(value, kind), _KEPT_ROWS)


def pieces(data: Bytes, spans: Spans) -> pa.Array:
    """
    The bytes of each span, copied out of *data*: by Arrow, for which they are views.
    """
    valid = None
    if not spans.valid.all():
        if not spans.valid.any():
            return pa.nulls(len(spans.valid), pa.binary())
        valid = pa.py_buffer(np.packbits(spans.valid, bitorder="little"))
    buffers = [valid, pa.py_buffer(spans.views), pa.py_buffer(data)]
    views = pa.Array.from_buffers(pa.binary_view(), len(spans.valid), buffers)
    return pc.cast(views, options=_TO_BYTES)


def header_lists(data: Bytes, headers: HeaderSpans) -> pa.Array:
    """
    The headers of each record; null where there are none, as Spark's connector has it.
    """
    edges = np.zeros(len(headers.counts) + 1, np.int32)
    np.cumsum(headers.counts, out=edges[1:])
    content = pa.StructArray.from_arrays(
        [_text(pieces(data, headers.names)), pieces(data, headers.values)], fields=list(HEADER)
    )
    none = pa.array(headers.counts == 0)
    return pa.ListArray.from_arrays(pa.array(edges), content, type=HEADERS, mask=none)


def _text(names: pa.Array) -> pa.Array:
    try:
        return names.cast(pa.string())
    except pa.ArrowInvalid:
        # Some name is not UTF-8: as Java's decoder does, the bytes are replaced that are not.
        return pa.array([name.decode(errors="replace") for name in names.to_pylist()], pa.string())
