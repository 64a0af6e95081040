"""
Columns of Arrow from values of Avro at many places, as they were written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from barnabas.pipeline.decoding.varint_columns import Ints
from barnabas.pipeline.values.avro.places import ValuePlaces, binary
from barnabas.pipeline.values.errors import MalformedValues

Read = Callable[[ValuePlaces], pa.Array]
"""Reads one value at each place."""

_INT_BITS: Final = 31
_MOST_EMPTY: Final = 1 << 16
"""So many items that take no bytes may be in a value: a few bytes may claim to be billions."""


def read_null(places: ValuePlaces) -> pa.Array:
    return pa.nulls(len(places))


def read_boolean(places: ValuePlaces) -> pa.Array:
    return pa.array(places.fixed_width(np.dtype(np.uint8)) != 0)


def read_int(places: ValuePlaces) -> pa.Array:
    numbers = places.numbers()
    if np.any((numbers >> _INT_BITS) != (numbers >> 63)):
        raise MalformedValues("An int has more than 32 bits.")
    return pa.array(numbers.astype(np.int32))


def read_long(places: ValuePlaces) -> pa.Array:
    return pa.array(places.numbers())


def read_float(places: ValuePlaces) -> pa.Array:
    return pa.array(places.fixed_width(np.dtype("<f4")))


def read_double(places: ValuePlaces) -> pa.Array:
    return pa.array(places.fixed_width(np.dtype("<f8")))


def read_bytes(places: ValuePlaces) -> pa.Array:
    return binary(places, places.numbers())


def read_string(places: ValuePlaces) -> pa.Array:
    return as_text(read_bytes(places))


def as_text(found: pa.Array) -> pa.Array:
    try:
        return found.cast(pa.string())
    except pa.ArrowInvalid:
        raise MalformedValues("A string is not UTF-8.") from None


PRIMITIVES: Final[dict[str, Read]] = {
    "null": read_null,
    "boolean": read_boolean,
    "int": read_int,
    "long": read_long,
    "float": read_float,
    "double": read_double,
    "bytes": read_bytes,
    "string": read_string,
}


def read_items(places: ValuePlaces, read: Read) -> tuple[Ints, pa.Array | None]:
    """
    The items of an array at each place: how many there are, and all of them one after the other.

    The first items of all arrays are read together, then the second ones, and so on.
    """
    counts = np.zeros(len(places), np.int64)
    found: list[pa.Array] = []
    owners: list[Ints] = []
    open_rows = np.arange(len(places))
    while len(open_rows):
        open_rows, left = _blocks(places, open_rows)
        rows = open_rows
        while len(rows):
            some = places.take(rows)
            found.append(read(some))
            some.check()
            _bound(some.at > places.at[rows], counts[rows] + left)
            places.put(rows, some)
            owners.append(rows)
            counts[rows] += 1
            left = left - 1
            rows, left = rows[left > 0], left[left > 0]
    if not found:
        return counts, None
    order = np.argsort(np.concatenate(owners), kind="stable")
    items = pa.concat_arrays(found)
    return counts, items if len(found) == 1 else items.take(pa.array(order))


def _blocks(places: ValuePlaces, rows: Ints) -> tuple[Ints, Ints]:
    """
    Those of *rows* where another block begins, and how many items it has.
    """
    some = places.take(rows)
    counts = some.numbers()
    sized = np.flatnonzero(counts < 0)
    if len(sized):
        # A block may say its size in bytes, by which a reader can skip it.
        with_size = some.take(sized)
        with_size.numbers()
        some.put(sized, with_size)
        counts = np.abs(counts)
    some.check()
    places.put(rows, some)
    return rows[counts != 0], counts[counts != 0]


def _bound(moved: Any, counts: Ints) -> None:
    if not moved.all() and np.any(counts[~moved] > _MOST_EMPTY):
        raise MalformedValues(f"An array has more than {_MOST_EMPTY} items without bytes.")


def offsets_of(counts: Ints) -> pa.Array:
    """
    Where the items of each array begin, and where the last ones end.
    """
    edges = np.zeros(len(counts) + 1, np.int32)
    np.cumsum(counts, out=edges[1:])
    return pa.array(edges)


def merged(rows: int, parts: Sequence[tuple[Ints, pa.Array]], kind: pa.DataType) -> pa.Array:
    """
    A column of *rows* rows from columns of some rows each; the others are null.
    """
    parts = [(where, part) for where, part in parts if len(where)]
    if len(parts) == 1 and len(parts[0][0]) == rows:
        return parts[0][1]
    if not parts:
        return pa.nulls(rows, kind)
    source = np.full(rows, -1, np.int64)
    source[np.concatenate([where for where, _ in parts])] = np.arange(
        sum(len(where) for where, _ in parts)
    )
    whole = pa.concat_arrays([part for _, part in parts])
    return whole.take(pa.array(source, mask=source < 0))
