"""
Rows become batches of records by array operations: no Python object is made of a row.

::

    prefix     length, attributes, timestamp, offset, length of the key     varints
    key
    middle     length of the value
    value
    headers

The bytes of a record are five columns of Arrow side by side. Arrow joins them row by row, and the
buffer of what it makes is the records one behind the other, as they stand in batches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from barnabas.pipeline.writing.rows import Rows, joined, lengths_of, nullable_length
from barnabas.pipeline.writing.varints import Ints, constant_bytes, side_by_side, size_of, zigzag
from barnabas.protocol.codec.primitives import Buffer
from barnabas.storage.topic_partition import TopicPartition

_NO_HEADERS: Final = b"\0"
_FRAME_BYTES: Final = 24
"""What a record has beside key, value and headers, at most about."""
_INT32: Final = 1 << 31


@dataclass(frozen=True)
class RecordSet:
    """
    The records of one batch.
    """

    partition: TopicPartition
    rows: Rows
    payload: Buffer

    def __len__(self) -> int:
        return len(self.rows)


def group_by_partition(
    rows: Rows, groups: npt.NDArray[np.int64]
) -> tuple[Rows, npt.NDArray[np.int64]]:
    """
    The rows, those of a group together, in their order within it; and their groups.
    """
    if len(groups) < 2 or (groups[1:] >= groups[:-1]).all():
        return rows, groups
    order = np.argsort(groups, kind="stable")
    return rows.take(order), groups[order]


def record_bytes(rows: Rows) -> Ints:
    """
    How large each record is, at most.
    """
    sizes = lengths_of(rows.value) + _FRAME_BYTES
    for column in (rows.key, rows.headers):
        if column is not None:
            sizes += lengths_of(column)
    return sizes


def starts_of_batches(groups: npt.NDArray[np.int64], sizes: Ints, batch_bytes: int) -> Ints:
    """
    The numbers of the rows that begin a batch: none has rows of two groups, nor more than
    *batch_bytes*, unless one row alone has.
    """
    before = np.cumsum(sizes) - sizes
    is_first = np.ones(len(groups), np.bool_)
    is_first[1:] = groups[1:] != groups[:-1]
    # From the first row of the group on.
    within = before - np.maximum.accumulate(np.where(is_first, before, 0))
    # Half of it, so that a bin with its last row, which may reach beyond, is small enough.
    half = max(1, batch_bytes // 2)
    bins = within // half
    is_first[1:] |= bins[1:] != bins[:-1]
    is_large = sizes > half
    is_first |= is_large
    is_first[1:] |= is_large[:-1]
    return np.flatnonzero(is_first)


def encode(rows: Rows, starts: Ints) -> tuple[Ints, pa.Buffer]:
    """
    The records of all rows one behind the other, and where each begins.

    Args:
        starts: the rows that begin a batch, from whose offset and timestamp others count.
    """
    count = len(rows)
    counts = np.diff(starts, append=count)
    offset_raw = zigzag(np.arange(count, dtype=np.int64) - np.repeat(starts, counts))
    base = np.repeat(rows.timestamps[starts], counts)
    time_raw = zigzag(rows.timestamps - base)
    value_sizes, value_raw = nullable_length(rows.value)
    attributes = np.zeros(count, np.int64), np.ones(count, np.int64)
    offset, time = (offset_raw, size_of(offset_raw)), (time_raw, size_of(time_raw))
    value = value_raw, size_of(value_raw)
    tail = constant_bytes(_NO_HEADERS) if rows.headers is None else rows.headers
    header_sizes: Ints | int = 1 if rows.headers is None else lengths_of(rows.headers)
    size = 1 + time[1] + offset[1] + value[1] + value_sizes + header_sizes
    if rows.key is None:
        key_raw = np.ones(count, np.int64)
        key = key_raw, np.ones(count, np.int64)
        fields = [attributes, time, offset, key, value]
        columns = [rows.value]
        size += 1
    else:
        key_sizes, key_raw = nullable_length(rows.key)
        key = key_raw, size_of(key_raw)
        fields = [attributes, time, offset, key]
        columns = [rows.key, side_by_side([value]), rows.value]
        size += key[1] + key_sizes
    assert int(size.sum()) < _INT32 - 16 * count, "rows come in chunks"
    size_raw = size << 1
    prefix = side_by_side([(size_raw, size_of(size_raw)), *fields])
    records = joined(prefix, *columns, tail)
    edges = np.frombuffer(records.buffers()[1], np.int32)[: count + 1].astype(np.int64)
    return edges, records.buffers()[2]


def record_sets(
    rows: Rows,
    groups: npt.NDArray[np.int64],
    partitions: dict[int, TopicPartition],
    batch_bytes: int,
) -> list[RecordSet]:
    """
    Batches of the rows, those of a partition in their order.

    Args:
        groups: a number for each row, and *partitions* what it stands for.
    """
    rows, groups = group_by_partition(rows, groups)
    starts = starts_of_batches(groups, record_bytes(rows), batch_bytes)
    edges, data = encode(rows, starts)
    view = memoryview(data)
    ends = np.append(starts[1:], len(rows))
    return [
        RecordSet(
            partitions[int(groups[start])],
            rows.slice(start, end - start),
            view[int(edges[start]) : int(edges[end])],
        )
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
    ]


def halves(records: RecordSet) -> list[RecordSet]:
    """
    The same records in two batches.
    """
    middle = len(records) // 2
    made = []
    for start, count in ((0, middle), (middle, len(records) - middle)):
        rows = records.rows.slice(start, count)
        edges, data = encode(rows, np.zeros(1, np.int64))
        payload = memoryview(data)[int(edges[0]) : int(edges[-1])]
        made.append(RecordSet(records.partition, rows, payload))
    return made
