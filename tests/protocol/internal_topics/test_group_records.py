"""
Records of ``__consumer_offsets``, against bytes that Kafka wrote.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.protocol.codec.codec import decode, encode
from barnabas.protocol.internal_topics.group_records import (
    RECORDS,
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
)
from tests.support.golden_logs import golden_batches

COMMITTED_MS = 1700000000000


@pytest.mark.scenario(82)
def test_group_record_keys_are_those_of_kafka() -> None:
    offset = OffsetCommitKey(group="g1", topic="t", partition=2)
    group = GroupMetadataKey(group="g1")

    assert 1 == offset.api.key
    assert bytes.fromhex("00026731 000174 00000002") == encode(offset, 0)
    assert 2 == group.api.key
    assert bytes.fromhex("00026731") == encode(group, 0)


@pytest.mark.scenario(82)
@pytest.mark.parametrize(
    ("version", "data"),
    [
        (0, "000000000000002a 00016d 0000018bcfe56800"),
        (1, "000000000000002a 00016d 0000018bcfe56800 ffffffffffffffff"),
        (2, "000000000000002a 00016d 0000018bcfe56800"),
        (3, "000000000000002a 00000005 00016d 0000018bcfe56800"),
        (4, "000000000000002a 00000005 026d 0000018bcfe56800 00"),
    ],
)
def test_offset_commit_record_equals_that_of_kafka_in_every_version(
    version: int, data: str
) -> None:
    value = OffsetCommitValue(
        offset=42,
        leader_epoch=5 if version >= 3 else -1,
        metadata="m",
        commit_timestamp=COMMITTED_MS,
    )

    assert bytes.fromhex(data) == encode(value, version)
    assert value == decode(OffsetCommitValue, version, bytes.fromhex(data))


@pytest.mark.parametrize("version", range(5))
def test_group_metadata_record_survives_a_round_trip_in_every_version(version: int) -> None:
    value = GroupMetadataValue(
        protocol_type="consumer",
        generation=7,
        protocol=None,
        leader="a",
        current_state_timestamp=COMMITTED_MS if version >= 2 else -1,
        members=[
            MemberMetadata(
                member_id="a",
                group_instance_id="i" if version >= 3 else None,
                client_id="c",
                client_host="/h",
                rebalance_timeout=1 if version >= 1 else -1,
                session_timeout=2,
                subscription=b"s",
                assignment=b"",
            )
        ],
    )

    assert value == decode(GroupMetadataValue, version, encode(value, version))


def test_group_records_of_kafka_survive_a_round_trip(golden: Path) -> None:
    """
    All key types and value versions that Apache Kafka 4.3.1 writes for groups of three protocols.
    """
    seen = set()
    for batch in golden_batches(golden, "*/data/__consumer_offsets-*/*.log"):
        for record in () if batch.is_control else batch.records():
            assert record.key is not None
            number = int.from_bytes(record.key[:2])
            key, value = RECORDS[number]
            assert encode(decode(key, 0, record.key[2:]), 0) == record.key[2:]
            if record.value is not None:
                version = int.from_bytes(record.value[:2])
                data = record.value[2:]
                assert encode(decode(value, version, data), version) == data
                seen.add((number, version))

    assert {(1, 4), (2, 3)} | {
        (number, 0) for number in (3, 5, 6, 7, 8, 10, 11, 12, 13, 14, 15, 16)
    } == seen


def test_group_record_types_cover_all_keys_of_kafka() -> None:
    """
    Except those that Kafka has abandoned.
    """
    assert set(range(24)) - {9, 18} == set(RECORDS)
    for number, (key, value) in RECORDS.items():
        assert number == key.api.key == value.api.key
        assert key.__name__.removesuffix("Key") == value.__name__.removesuffix("Value")
