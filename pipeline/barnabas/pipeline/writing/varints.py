"""
Columns of Arrow whose values are numbers of the wire, one behind the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Ints = npt.NDArray[np.int64]


@cache
def constant_bytes(value: bytes) -> pa.Scalar:
    """
    A column that has *value* in all rows.
    """
    # Not at an import: with its first value pyarrow loads pandas, for a third of a second.
    return pa.scalar(value, pa.binary())


def zigzag(values: Ints) -> Ints:
    """
    The raw numbers that stand for *values*, as the digits of a varint.
    """
    raw: Ints = (values << 1) ^ (values >> 63)
    return raw


def size_of(raw: Ints) -> Ints:
    """
    How many bytes each of the raw numbers takes.
    """
    sizes = np.ones(len(raw), np.int64)
    most = int(raw.max(initial=0))
    if int(raw.min(initial=0)) < 0:
        # The top bit is a digit here.
        return _size_of_any(raw.view(np.uint64))
    shift = 7
    while most >> shift:
        sizes += raw >= (1 << shift)
        shift += 7
    return sizes


def _size_of_any(raw: npt.NDArray[np.uint64]) -> Ints:
    sizes = np.ones(len(raw), np.int64)
    for shift in range(7, 64, 7):
        sizes += raw >= np.uint64(1 << shift)
    return sizes


def side_by_side(fields: Sequence[tuple[Ints, Ints]]) -> pa.Array:
    """
    For each row its varints, one behind the other.

    Args:
        fields: the raw numbers of each field, and their sizes.
    """
    rows = len(fields[0][0])
    widths = [int(sizes.max(initial=1)) for _, sizes in fields]
    digits = np.empty((rows, sum(widths)), np.uint8)
    used = np.ones((rows, sum(widths)), np.bool_)
    column = 0
    for (raw, sizes), width in zip(fields, widths, strict=True):
        unsigned = raw.view(np.uint64)
        for place in range(width):
            digit = (unsigned >> np.uint64(7 * place)) & np.uint64(0x7F)
            more = sizes > place + 1
            digits[:, column] = digit | (more.astype(np.uint64) << np.uint64(7))
            if place:
                used[:, column] = sizes > place
            column += 1
    total = np.zeros(rows, np.int64)
    for _, sizes in fields:
        total += sizes
    data = digits.reshape(-1) if used.all() else digits[used]
    return binary_array(edges_of(total), data)


def edges_of(sizes: Ints) -> Ints:
    """
    Where values of these sizes begin that lie one behind the other, and where the last one ends.
    """
    edges = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=edges[1:])
    return edges


def binary_array(edges: Ints, data: npt.NDArray[np.uint8] | pa.Buffer) -> pa.Array:
    """
    The pieces of *data* between *edges*; *data* is not copied.
    """
    offsets = edges.astype(np.int32)
    return pa.Array.from_buffers(
        pa.binary(), len(edges) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    )
