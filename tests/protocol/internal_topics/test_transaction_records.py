"""
Records of ``__transaction_state``, against bytes that Kafka wrote.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.protocol.codec.codec import decode, encode
from barnabas.protocol.internal_topics.transaction_records import (
    PartitionsSchema,
    TransactionLogKey,
    TransactionLogValue,
)
from tests.support.golden_logs import golden_batches

EMPTY, ONGOING = 0, 1


def transaction(status: int, partitions: list[PartitionsSchema] | None) -> TransactionLogValue:
    return TransactionLogValue(
        producer_id=4000,
        producer_epoch=3,
        transaction_timeout_ms=60000,
        transaction_status=status,
        transaction_partitions=partitions,
        transaction_last_update_timestamp_ms=1700000000001,
        transaction_start_timestamp_ms=1700000000000,
    )


@pytest.mark.scenario(82)
@pytest.mark.parametrize(
    ("version", "partitions", "data"),
    [
        (
            0,
            [PartitionsSchema(topic="t", partition_ids=[0, 1])],
            "0000000000000fa0 0003 0000ea60 01 00000001 000174 00000002 00000000 00000001"
            "0000018bcfe56801 0000018bcfe56800",
        ),
        (
            1,
            [PartitionsSchema(topic="t", partition_ids=[0, 1])],
            "0000000000000fa0 0003 0000ea60 01 02 0274 03 00000000 00000001 00"
            "0000018bcfe56801 0000018bcfe56800 00",
        ),
        (
            0,
            None,
            "0000000000000fa0 0003 0000ea60 00 ffffffff 0000018bcfe56801 0000018bcfe56800",
        ),
        (
            1,
            None,
            "0000000000000fa0 0003 0000ea60 00 00 0000018bcfe56801 0000018bcfe56800 00",
        ),
    ],
)
def test_transaction_record_equals_that_of_kafka(
    version: int, partitions: list[PartitionsSchema] | None, data: str
) -> None:
    value = transaction(EMPTY if partitions is None else ONGOING, partitions)

    assert bytes.fromhex(data) == encode(value, version)
    assert value == decode(TransactionLogValue, version, bytes.fromhex(data))


@pytest.mark.scenario(82)
def test_transaction_record_key_is_the_transactional_id() -> None:
    assert bytes.fromhex("0002 7478") == encode(TransactionLogKey(transactional_id="tx"), 0)


def test_transaction_records_of_kafka_survive_a_round_trip(golden: Path) -> None:
    seen = set()
    for batch in golden_batches(golden, "*/data/__transaction_state-*/*.log"):
        for record in batch.records():
            assert record.key is not None
            assert b"\0\0" == record.key[:2]
            key = decode(TransactionLogKey, 0, record.key[2:])
            assert encode(key, 0) == record.key[2:]
            if record.value is not None:
                version = int.from_bytes(record.value[:2])
                value = decode(TransactionLogValue, version, record.value[2:])
                assert encode(value, version) == record.value[2:]
                seen.add((version, value.transaction_status))

    assert {(version, status) for version in (0, 1) for status in range(6)} <= seen
