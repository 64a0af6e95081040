"""
Rows that are to become records.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.pipeline.errors import RowError
from barnabas.pipeline.writing.varints import (
    Ints,
    binary_array,
    constant_bytes,
    edges_of,
    side_by_side,
    size_of,
    zigzag,
)
from barnabas.protocol.errors import ErrorCode

_SHOWN_BYTES: Final = 32
"""Of a key, in an error."""


@dataclass(frozen=True)
class Rows:
    """
    Columns of the same length; those that are None are null in all rows.
    """

    value: pa.Array
    key: pa.Array | None
    timestamps: Ints
    """In ms."""
    headers: pa.Array | None
    """As they stand in a record, with their number in front; None where no row has one."""
    numbers: Ints
    """Those of the rows in their task, from 0 on."""

    def __len__(self) -> int:
        return len(self.numbers)

    def take(self, order: npt.NDArray[np.intp]) -> Rows:
        indices = pa.array(order)
        return Rows(
            self.value.take(indices),
            None if self.key is None else self.key.take(indices),
            self.timestamps[order],
            None if self.headers is None else self.headers.take(indices),
            self.numbers[order],
        )

    def slice(self, start: int, count: int) -> Rows:
        return Rows(
            self.value.slice(start, count),
            None if self.key is None else self.key.slice(start, count),
            self.timestamps[start : start + count],
            None if self.headers is None else self.headers.slice(start, count),
            self.numbers[start : start + count],
        )

    def name(self, index: int, task: int) -> str:
        """
        What an error calls the row at *index*.
        """
        key = None if self.key is None else self.key[index].as_py()
        shown = key
        if key is not None and len(key) > _SHOWN_BYTES:
            shown = key[:_SHOWN_BYTES]
        dots = "..." if shown is not key else ""
        return f"row {self.numbers[index]} of task {task}, key {shown!r}{dots}"


def lengths_of(column: pa.Array) -> Ints:
    """
    The bytes of each value, 0 where it is null.
    """
    edges = np.frombuffer(column.buffers()[1], np.int32)
    edges = edges[column.offset : column.offset + len(column) + 1]
    sizes = np.diff(edges).astype(np.int64)
    if column.null_count:
        sizes[nulls_of(column)] = 0
    return sizes


def nulls_of(column: pa.Array) -> npt.NDArray[np.bool_]:
    nulls: npt.NDArray[np.bool_] = column.is_null().to_numpy(zero_copy_only=False)
    return nulls


def nullable_length(column: pa.Array) -> tuple[Ints, Ints]:
    """
    The bytes of each value, and the raw number that stands for them in a record: -1 for null.
    """
    sizes = lengths_of(column)
    raw = sizes << 1
    if column.null_count:
        raw[nulls_of(column)] = 1
    return sizes, raw


def joined(*columns: pa.Array) -> pa.Array:
    """
    The values of the columns, row by row, one behind the other; null adds nothing.
    """
    return pc.binary_join_element_wise(
        *columns, constant_bytes(b""), null_handling="replace", null_replacement=""
    )


def encoded_headers(lists: pa.Array, numbers: Ints, task: int) -> pa.Array | None:
    """
    Headers as they stand in records; None if no row has one.

    Raises:
        RowError: a header is null, or has no name.
    """
    counts: Ints = pc.fill_null(pc.list_value_length(lists), 0).to_numpy().astype(np.int64)
    if not counts.any():
        return None
    flat = lists.flatten()
    names = flat.field(0).cast(pa.binary())
    if flat.null_count or names.null_count:
        bad = nulls_of(flat) | nulls_of(names)
        row = int(np.searchsorted(np.cumsum(counts), int(bad.argmax()), side="right"))
        raise RowError(
            ErrorCode.INVALID_RECORD,
            f"A header of row {numbers[row]} of task {task} is null or has no name.",
        )
    values = flat.field(1).cast(pa.binary())
    name_raw = lengths_of(names) << 1
    _, value_raw = nullable_length(values)
    content = joined(
        side_by_side([(name_raw, size_of(name_raw))]),
        names,
        side_by_side([(value_raw, size_of(value_raw))]),
        values,
    )
    content_edges = np.frombuffer(content.buffers()[1], np.int32).astype(np.int64)
    of_rows = binary_array(content_edges[edges_of(counts)], content.buffers()[2])
    raw = zigzag(counts)
    return joined(side_by_side([(raw, size_of(raw))]), of_rows)
