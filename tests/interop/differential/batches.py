"""
Stored batches, so that those of two brokers can be compared.

A batch is its bytes. Only where it holds a time of the broker's own clock is it what its bytes say:
then its times and its checksum are left out. The delete horizon of tombstones is such a time, too,
and their timestamps are written as distances from it.

Where the broker compressed with a library that makes other bytes of the same records, a batch is
compared by the records (*loosely*).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from barnabas.protocol.errors import CorruptMessage, InvalidRecord
from barnabas.protocol.records.batch import RecordBatch, batches

IsNow = Callable[[int], bool]


def comparable_batches(data: bytes, is_now: IsNow, *, loosely: bool = False) -> list[Any]:
    """
    The batches in *data*, the last of which may be cut.
    """
    found: list[Any] = []
    position = 0
    for batch in whole_batches(data):
        found.append(_loose(batch) if loosely else _comparable(batch, is_now))
        position = batch.end
    if (rest := data[position:]) and not loosely:
        found.append({"part of a batch": len(rest), "of": rest[:8].hex()})
    return found


def whole_batches(data: bytes) -> Iterator[RecordBatch]:
    """
    Up to what is none, as the zeros are that a file was made with.
    """
    with contextlib.suppress(CorruptMessage):
        yield from batches(data)


def _comparable(batch: RecordBatch, is_now: IsNow) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "base_offset": batch.base_offset,
        "size": batch.size,
        "epoch": batch.partition_leader_epoch,
        "attributes": batch.attributes,
        "last_offset": batch.last_offset,
        "producer": (batch.producer_id, batch.producer_epoch, batch.base_sequence),
        "record_count": batch.record_count,
    }
    if batch.delete_horizon_ms is not None:
        return facts | {"records": list(batch.records()), "horizon": "some time"}
    times = (batch.base_timestamp, batch.max_timestamp)
    if any(map(is_now, times)):
        facts["times"] = tuple("now" if is_now(time) else time for time in times)
        if not batch.codec:
            facts["records"] = [
                (r.offset, "now" if is_now(r.timestamp) else r.timestamp, r.key, r.value, r.headers)
                for r in batch.records()
            ]
        else:
            facts["payload"] = bytes(batch.payload)
    else:
        facts["times"] = times
        facts["crc"] = batch.crc
        facts["payload"] = bytes(batch.payload)
    return facts


def _loose(batch: RecordBatch) -> dict[str, Any]:
    return {
        "base_offset": batch.base_offset,
        "epoch": batch.partition_leader_epoch,
        "attributes": batch.attributes,
        "records": _records(batch),
    }


def _records(batch: RecordBatch) -> Any:
    """
    The records, or the payload if it has none: a broker does not look into every batch.
    """
    try:
        return list(batch.records())
    except InvalidRecord:
        return bytes(batch.payload)
