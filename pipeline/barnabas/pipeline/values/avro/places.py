"""
Where many values are read at once, and the numbers and bytes that stand there.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from barnabas.pipeline.decoding import varint_columns
from barnabas.pipeline.decoding.arrow import pieces
from barnabas.pipeline.decoding.spans import Spans
from barnabas.pipeline.decoding.varint_columns import VARLONG_BYTES, Bytes, Ints
from barnabas.pipeline.values.errors import MalformedValues

ENDS_EARLY: Final = "It ends in the middle of a field."
_DECIMAL_BYTES: Final = 16


class ValuePlaces:
    """
    One position of each value in *data*. What reads there moves the positions behind what it read.

    A read may go beyond the end of a value into the next one; ``check`` finds that, and must be
    called before a result is believed.
    """

    def __init__(self, data: Bytes, at: Ints, ends: Ints) -> None:
        self.data, self.at, self.ends = data, at, ends

    def __len__(self) -> int:
        return len(self.at)

    def take(self, rows: Ints) -> ValuePlaces:
        """
        Those of some rows, which move on their own until ``put``.
        """
        return ValuePlaces(self.data, self.at[rows], self.ends[rows])

    def put(self, rows: Ints, moved: ValuePlaces) -> None:
        """
        Take over how far the places of *rows* have moved.
        """
        self.at[rows] = moved.at

    def check(self) -> None:
        """
        Raises:
            MalformedValues: a value has ended before what was read.
        """
        if np.any(self.at > self.ends):
            raise MalformedValues(ENDS_EARLY)

    def numbers(self) -> Ints:
        """
        A ``long`` at each place.
        """
        try:
            raw = varint_columns.read_raw(self.data, self.at, VARLONG_BYTES)
        except varint_columns.MalformedRecords:
            raise MalformedValues("A number has more than ten bytes.") from None
        except IndexError:
            raise MalformedValues(ENDS_EARLY) from None
        return varint_columns.signed(raw)

    def fixed_width(self, kind: np.dtype[np.generic]) -> npt.NDArray[np.generic]:
        """
        A little-endian number at each place.
        """
        where = self.at[:, None] + np.arange(kind.itemsize)
        self.at += kind.itemsize
        try:
            return self.data.take(where).view(kind).reshape(-1)
        except IndexError:
            raise MalformedValues(ENDS_EARLY) from None

    def skip(self, sizes: Ints) -> Ints:
        """
        Move on by *sizes*, and return where the places were.

        Raises:
            MalformedValues: a size is negative, or more than what is left of the value.
        """
        if np.any(sizes < 0):
            raise MalformedValues("A length is negative.")
        starts = self.at.copy()
        if np.any(sizes > self.ends - starts):
            raise MalformedValues(ENDS_EARLY)
        self.at += sizes
        return starts


def binary(places: ValuePlaces, sizes: Ints) -> pa.Array:
    """
    As many bytes as *sizes* says, at each place.
    """
    starts = places.skip(sizes)
    return pieces(places.data, Spans.of(places.data, starts, sizes))


def decimals(places: ValuePlaces, sizes: Ints, kind: pa.Decimal128Type) -> pa.Array:
    """
    Decimals whose digits are big-endian numbers of as many bytes.
    """
    starts = places.skip(sizes)
    if np.any((sizes > _DECIMAL_BYTES) | (sizes == 0)):
        raise MalformedValues("A decimal has no bytes, or more than 16.")
    # From the last byte on; what is in front of the first one is its sign.
    behind = np.arange(_DECIMAL_BYTES)
    where = np.maximum((starts + sizes - 1)[:, None] - behind, starts[:, None])
    content = places.data.take(where)
    sign = np.where(places.data.take(starts) & 0x80, np.uint8(0xFF), np.uint8(0))
    content = np.where(behind < sizes[:, None], content, sign[:, None])
    buffer = pa.py_buffer(np.ascontiguousarray(content))
    found = pa.Array.from_buffers(kind, len(starts), [None, buffer])
    try:
        found.validate(full=True)
    except pa.ArrowInvalid:
        raise MalformedValues(f"A decimal has more than {kind.precision} digits.") from None
    return found
