"""
The columns of each level at which a log can be read.

Spark takes a batch of Arrow only if its types are the ones here exactly: all nullable, strings and
bytes with 32-bit offsets, timestamps in us of UTC. The record columns are those of Spark's Kafka
connector with ``includeHeaders``, in its order and with its names. Offsets have the same names at
every level: ``baseOffset`` is the first of a batch or segment, ``nextOffset`` the one behind it.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Final

import pyarrow as pa

from barnabas.pipeline.errors import InvalidOption

TIMESTAMP: Final = pa.timestamp("us", tz="UTC")
HEADER: Final = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
HEADERS: Final = pa.list_(HEADER)

CORRUPT_COLUMN: Final = "_corrupt_record"
"""Where ``mode=PERMISSIVE`` says what is wrong; null in all rows that are records."""
OLD_CORRUPT_COLUMN: Final = "corrupt"
"""The same with ``onCorrupt=permissive``."""

RECORDS: Final = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", TIMESTAMP),
        ("timestampType", pa.int32()),
        ("headers", HEADERS),
    ]
)
FAR_TIMESTAMP: Final = "farTimestamp"
"""The ms of a time that a timestamp of Arrow and Spark cannot hold; null of all other records."""
ARCHIVED: Final = RECORDS.append(pa.field(FAR_TIMESTAMP, pa.int64()))
"""The columns of archives and of compacted topics, which keep every time."""
PERMISSIVE_RECORDS: Final = ARCHIVED.append(pa.field(CORRUPT_COLUMN, pa.string())).append(
    pa.field(OLD_CORRUPT_COLUMN, pa.string())
)
"""All columns that a record may have."""

BATCHES: Final = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("segment", pa.int64()),
        ("position", pa.int64()),
        ("size", pa.int32()),
        ("baseOffset", pa.int64()),
        ("nextOffset", pa.int64()),
        ("records", pa.int32()),
        ("codec", pa.string()),
        ("baseTimestamp", TIMESTAMP),
        ("maxTimestamp", TIMESTAMP),
        ("timestampType", pa.int32()),
        ("leaderEpoch", pa.int32()),
        ("producerId", pa.int64()),
        ("producerEpoch", pa.int32()),
        ("baseSequence", pa.int32()),
        ("transactional", pa.bool_()),
        ("control", pa.bool_()),
        ("deleteHorizon", TIMESTAMP),
        ("lastOffset", pa.int64()),
    ]
)
OLD_COLUMNS: Final = {"lastOffset": "nextOffset", OLD_CORRUPT_COLUMN: CORRUPT_COLUMN}
"""Those that are there only if they are named, by what takes their place."""

SEGMENTS: Final = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("baseOffset", pa.int64()),
        ("nextOffset", pa.int64()),
        ("size", pa.int64()),
        ("firstTimestamp", TIMESTAMP),
        ("maxTimestamp", TIMESTAMP),
        ("modified", TIMESTAMP),
        ("active", pa.bool_()),
        ("path", pa.string()),
    ]
)


class RowLevel(Enum):
    """
    What a row stands for.
    """

    RECORDS = "records"
    BATCHES = "batches"
    SEGMENTS = "segments"


def schema_of(level: RowLevel, *, corrupt_column: str | None = None) -> pa.Schema:
    """
    All columns of *level*.

    Args:
        corrupt_column: the one that says of a row of records what is wrong, if there is one.
    """
    if level is RowLevel.RECORDS:
        return project(PERMISSIVE_RECORDS, [*ARCHIVED.names, *filter(None, [corrupt_column])])
    return BATCHES if level is RowLevel.BATCHES else SEGMENTS


def project(schema: pa.Schema, columns: Sequence[str]) -> pa.Schema:
    """
    The columns of *schema* that are named, in that order.

    Raises:
        InvalidOption: there is no such column.
    """
    unknown = [name for name in columns if name not in schema.names]
    if unknown:
        names = ", ".join(name for name in schema.names if name not in OLD_COLUMNS)
        raise InvalidOption(f"There is no column {', '.join(unknown)}; there are {names}.")
    return pa.schema([schema.field(name) for name in columns])
