"""
Which schema each value was written with.

confluent-kafka puts the schema in front of a value: a zero byte and the id in four bytes
(big-endian), or a one and the GUID in 16 bytes; or it puts the latter into a header,
``__value_schema_id`` or ``__key_schema_id``, and leaves the value as it is. Of Protobuf, where the
message stands in its schema follows the id or GUID.
"""

from __future__ import annotations

from typing import Final, NamedTuple
from uuid import UUID

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.pipeline.decoding.varint_columns import Bytes, Ints
from barnabas.pipeline.values.registry import SchemaKey

VALUE_HEADER: Final = "__value_schema_id"
KEY_HEADER: Final = "__key_schema_id"

ID_BYTES: Final = 5
GUID_BYTES: Final = 17
_WITH_ID: Final = 0
_WITH_GUID: Final = 1


class Frame(NamedTuple):
    """
    What stands before the values of one schema.
    """

    key: SchemaKey
    message: bytes = b""
    """What follows the GUID in a header."""


class Values(NamedTuple):
    """
    The bytes of a column, and where in them each value begins and ends.
    """

    data: Bytes
    starts: Ints
    ends: Ints
    valid: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, column: pa.Array) -> Values:
        """
        Those of a column of bytes.
        """
        # Spark may be told to send large ones (``arrow.useLargeVarTypes``).
        width = np.int64 if pa.types.is_large_binary(column.type) else np.int32
        all_edges = np.frombuffer(column.buffers()[1], width)
        edges = all_edges[column.offset : column.offset + len(column) + 1].astype(np.int64)
        content = column.buffers()[2]
        data = np.empty(0, np.uint8) if content is None else np.frombuffer(content, np.uint8)
        valid = column.is_valid().to_numpy(zero_copy_only=False)
        # Starts move, ends do not.
        return cls(data, edges[:-1].copy(), edges[1:], valid)


def frames(values: Values, headers: list[bytes | None] | None) -> dict[Frame | str, Ints]:
    """
    The rows of each frame; those that have none, by the sentence that says why. Null values are
    left out. The starts of *values* are moved behind what was read.

    Args:
        headers: of each row, the header that may name its schema.
    """
    rows = np.flatnonzero(values.valid)
    found: dict[Frame | str, Ints] = {}
    if headers is not None:
        named = np.array([header is not None for header in headers], np.bool_)
        found.update(_in_headers(headers, rows[named[rows]]))
        rows = rows[~named[rows]]
    first, size = _first_bytes(values, rows)
    with_id = (first == _WITH_ID) & (size >= ID_BYTES)
    with_guid = (first == _WITH_GUID) & (size >= GUID_BYTES)
    found.update(_with_ids(values, rows[with_id]))
    found.update(_with_guids(values, rows[with_guid]))
    for row, byte, bytes_ in zip(
        *(a[~(with_id | with_guid)] for a in (rows, first, size)), strict=True
    ):
        reason = _not_framed(int(byte), int(bytes_))
        found[reason] = np.append(found.get(reason, np.empty(0, np.int64)), row)
    return found


def _first_bytes(values: Values, rows: Ints) -> tuple[Ints, Ints]:
    size = values.ends[rows] - values.starts[rows]
    first = np.full(len(rows), -1, np.int64)
    some = size > 0
    first[some] = values.data[values.starts[rows[some]]]
    return first, size


def _not_framed(first: int, size: int) -> str:
    if first in (_WITH_ID, _WITH_GUID):
        return f"It has {size} bytes, which is too few for the id of a schema."
    what = "It is empty" if not size else f"It begins with {first:#04x}"
    return f"{what}, so it was not written with a schema registry."


def _with_ids(values: Values, rows: Ints) -> dict[Frame | str, Ints]:
    if not len(rows):
        return {}
    starts = values.starts[rows]
    ids = values.data[starts[:, None] + np.arange(1, ID_BYTES)].view(">u4").reshape(-1)
    values.starts[rows] += ID_BYTES
    return {Frame(key): rows[ids == key] for key in np.unique(ids).tolist()}


def _with_guids(values: Values, rows: Ints) -> dict[Frame | str, Ints]:
    if not len(rows):
        return {}
    starts = values.starts[rows]
    guids = values.data[starts[:, None] + np.arange(1, GUID_BYTES)]
    values.starts[rows] += GUID_BYTES
    different, numbers = np.unique(guids, axis=0, return_inverse=True)
    return {
        Frame(str(UUID(bytes=guid.tobytes()))): rows[numbers.reshape(-1) == number]
        for number, guid in enumerate(different)
    }


def _in_headers(headers: list[bytes | None], rows: Ints) -> dict[Frame | str, Ints]:
    groups: dict[Frame | str, list[int]] = {}
    for row in rows.tolist():
        groups.setdefault(_in_header(headers[row] or b""), []).append(row)
    return {frame: np.array(some, np.int64) for frame, some in groups.items()}


def _in_header(header: bytes) -> Frame | str:
    if header[:1] == bytes([_WITH_GUID]) and len(header) >= GUID_BYTES:
        return Frame(str(UUID(bytes=header[1:GUID_BYTES])), header[GUID_BYTES:])
    if header[:1] == bytes([_WITH_ID]) and len(header) >= ID_BYTES:
        return Frame(int.from_bytes(header[1:ID_BYTES], "big"), header[ID_BYTES:])
    return "Its header names no schema."


def schema_headers(headers: pa.Array, name: str) -> list[bytes | None]:
    """
    Of each row, the first header called *name*.
    """
    if not pc.any(pc.equal(headers.flatten().field("key"), name)).as_py():
        return [None] * len(headers)
    return [
        next((h["value"] or b"" for h in some or () if h["key"] == name), None)
        for some in headers.to_pylist()
    ]
