"""
Columns from values that are decoded one by one, as objects of Python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from barnabas.pipeline.decoding.varint_columns import Bytes, Ints
from barnabas.pipeline.values.errors import MalformedValues

ReadColumn = Callable[[Bytes, Ints, Ints], pa.Array]
"""
Reads a column of the values between starts and ends, or raises ``MalformedValues``.
"""


def one_by_one(decode: Callable[[bytes], Any], kind: pa.DataType) -> ReadColumn:
    """
    Reads a column with what *decode* makes of the bytes of each value.
    """

    def read(data: Bytes, starts: Ints, ends: Ints) -> pa.Array:
        raw = data.data
        spans = zip(starts.tolist(), ends.tolist(), strict=True)
        found = [decode(bytes(raw[start:end])) for start, end in spans]
        try:
            return pa.array(found, kind)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise MalformedValues(f"It does not fit its schema: {error}") from None

    return read
