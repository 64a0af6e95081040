"""
Rows about batches, from their headers alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache

import pyarrow as pa

from barnabas.pipeline.decoding.arrow import constant, numbers, timestamps
from barnabas.pipeline.decoding.batch_headers import Headers, ends, has_flag, last_offsets
from barnabas.pipeline.decoding.decode import RowPartition
from barnabas.pipeline.schemas import BATCHES, project
from barnabas.protocol.compression import CompressionType
from barnabas.protocol.records.batch import (
    COMPRESSION_MASK,
    CONTROL_FLAG,
    DELETE_HORIZON_FLAG,
    LOG_APPEND_TIME_FLAG,
    TRANSACTIONAL_FLAG,
)


@cache
def _codecs() -> pa.Array:
    # Not at the import: with its first array pyarrow loads pandas, for a third of a second.
    return pa.array([*(codec.name.lower() for codec in CompressionType), "?", "?", "?"])


def batch_rows(
    headers: Headers, place: RowPartition, segment: int, columns: Sequence[str]
) -> pa.RecordBatch:
    """
    A row for each of the batches, of the segment whose base offset is *segment*; their positions
    count from its beginning.
    """
    count = len(headers)
    has_horizon = has_flag(headers, DELETE_HORIZON_FLAG)
    made: Mapping[str, Callable[[pa.DataType], pa.Array]] = {
        "topic": lambda kind: constant(place.topic, count, kind),
        "partition": lambda kind: constant(place.partition, count, kind),
        "segment": lambda kind: constant(segment, count, kind),
        "position": lambda kind: numbers(headers["position"], kind),
        "size": lambda kind: numbers(ends(headers) - headers["position"], kind),
        "baseOffset": lambda kind: numbers(headers["base_offset"], kind),
        "nextOffset": lambda kind: numbers(last_offsets(headers) + 1, kind),
        "lastOffset": lambda kind: numbers(last_offsets(headers), kind),
        "records": lambda kind: numbers(headers["record_count"], kind),
        "codec": lambda _: _codecs().take(pa.array(headers["attributes"] & COMPRESSION_MASK)),
        # Where a delete horizon is, the base timestamp was.
        "baseTimestamp": lambda _: timestamps(headers["base_timestamp"], has_horizon),
        "maxTimestamp": lambda _: timestamps(headers["max_timestamp"]),
        "timestampType": lambda kind: numbers(has_flag(headers, LOG_APPEND_TIME_FLAG), kind),
        "leaderEpoch": lambda kind: numbers(headers["leader_epoch"], kind),
        "producerId": lambda kind: numbers(headers["producer_id"], kind),
        "producerEpoch": lambda kind: numbers(headers["producer_epoch"], kind),
        "baseSequence": lambda kind: numbers(headers["base_sequence"], kind),
        "transactional": lambda _: pa.array(has_flag(headers, TRANSACTIONAL_FLAG)),
        "control": lambda _: pa.array(has_flag(headers, CONTROL_FLAG)),
        "deleteHorizon": lambda _: timestamps(headers["base_timestamp"], ~has_horizon),
    }
    schema = project(BATCHES, columns)
    arrays = [made[field.name](field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
