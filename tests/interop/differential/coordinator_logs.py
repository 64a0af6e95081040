"""
What the logs of the coordinators say about a workload: the internal topics are everybody's, and in
which order workloads write to them is a matter of chance.

Records are compared field by field, each with the producer, the epochs and the kind of its batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from struct import unpack
from typing import Any, Final

from barnabas.protocol.codec.codec import decode
from barnabas.protocol.internal_topics.group_records import RECORDS
from barnabas.protocol.internal_topics.transaction_records import (
    TransactionLogKey,
    TransactionLogValue,
)
from barnabas.protocol.records.batch import RecordBatch
from barnabas.protocol.records.control import EndTransactionMarker
from barnabas.protocol.records.record import Record
from tests.interop.differential.batches import whole_batches

GROUPS_TOPIC: Final = "__consumer_offsets"
TRANSACTIONS_TOPIC: Final = "__transaction_state"

UNORDERED_KINDS: Final = frozenset({1, 16})
"""
Kinds of records that Kafka writes in the order of a hash map that goes by more than ids of members:
offsets that are deleted, and regular expressions.
"""

Plain = Callable[[Any, int], Any]
"""Makes a message and its version something that can be compared."""

_KEYS: Final[Mapping[str, Mapping[int, tuple[Any, Any]]]] = {
    TRANSACTIONS_TOPIC: {0: (TransactionLogKey, TransactionLogValue)},
    GROUPS_TOPIC: RECORDS,
}


def coordinator_records(
    data: Path, topic: str, plain: Plain, *, are_members_named: bool = True
) -> dict[str, Any]:
    """
    What both logs say about transactional ids and groups that begin with a topic and a dot.

    Args:
        are_members_named: the workload has given all ids of members, so that hash maps have them in
            the same order.
    """
    transactions = [*_records(data, TRANSACTIONS_TOPIC, topic, plain)]
    ids = {record["value"]["producer_id"] for record in transactions if record["value"]}
    groups = [
        record
        for kind, alike in groupby(
            _records(data, GROUPS_TOPIC, topic, plain), key=lambda each: each["kind"]
        )
        for record in (
            sorted(alike, key=lambda each: repr(each["key"]))
            if kind in UNORDERED_KINDS or not are_members_named
            else alike
        )
    ]
    return {TRANSACTIONS_TOPIC: transactions, GROUPS_TOPIC: [*groups, *_markers(data, ids)]}


def _batches(data: Path, log: str) -> Iterator[RecordBatch]:
    for path in sorted(data.glob(f"{log}-*/*.log")):
        yield from whole_batches(path.read_bytes())


def _records(data: Path, log: str, topic: str, plain: Plain) -> Iterator[dict[str, Any]]:
    needle = f"{topic}.".encode()
    for batch in _batches(data, log):
        # Few of the batches are of this workload, and to decode the others takes long.
        if not batch.is_control and (batch.codec or needle in bytes(batch.data)):
            for record in batch.records():
                told = _record(record, _KEYS[log], plain)
                if told is not None and _name(told["key"]).startswith(f"{topic}."):
                    yield told | _about(batch)


def _name(key: Mapping[str, Any]) -> str:
    name: str = key.get("transactional_id") or key.get("group") or key.get("group_id") or ""
    return name


def _record(
    record: Record, keys: Mapping[int, tuple[Any, Any]], plain: Plain
) -> dict[str, Any] | None:
    assert record.key is not None, "every record of a coordinator has a key"
    (kind,) = unpack(">h", record.key[:2])
    if kind not in keys:
        return None
    key_class, value_class = keys[kind]
    key = plain(decode(key_class, 0, record.key[2:]), 0)
    told: dict[str, Any] = {"kind": kind, "key": key, "value": None}
    if record.value is not None:
        (version,) = unpack(">h", record.value[:2])
        value = plain(decode(value_class, version, record.value[2:]), version)
        told |= {"value": value, "version": version}
    return told


def _about(batch: RecordBatch) -> dict[str, Any]:
    return {
        "producer": (batch.producer_id, batch.producer_epoch, batch.base_sequence),
        "attributes": batch.attributes,
        "leader_epoch": batch.partition_leader_epoch,
    }


def _markers(data: Path, ids: set[int]) -> Iterator[dict[str, Any]]:
    for batch in _batches(data, GROUPS_TOPIC):
        if batch.is_control and batch.producer_id in ids:
            (record,) = batch.records()
            yield {"marker": EndTransactionMarker.deserialize(record)} | _about(batch)
