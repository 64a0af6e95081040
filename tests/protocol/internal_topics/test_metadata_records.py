"""
Records of ``__cluster_metadata``, against bytes that Kafka wrote.
"""

from __future__ import annotations

from pathlib import Path

from barnabas.protocol.codec.codec import decode, encode
from barnabas.protocol.codec.primitives import read_uvarint
from barnabas.protocol.codec.schema import ZERO_UUID
from barnabas.protocol.internal_topics.metadata_records import RECORDS, PartitionChangeRecord
from tests.support.golden_logs import golden_batches

FRAME_VERSION = 1


NUMBERS = {
    "RegisterBroker": 0,
    "UnregisterBroker": 1,
    "Topic": 2,
    "Partition": 3,
    "Config": 4,
    "PartitionChange": 5,
    "FenceBroker": 7,
    "UnfenceBroker": 8,
    "RemoveTopic": 9,
    "DelegationToken": 10,
    "UserScramCredential": 11,
    "FeatureLevel": 12,
    "ClientQuota": 14,
    "ProducerIds": 15,
    "BrokerRegistrationChange": 17,
    "AccessControlEntry": 18,
    "RemoveAccessControlEntry": 19,
    "NoOp": 20,
    "ZkMigrationState": 21,
    "RemoveUserScramCredential": 22,
    "BeginTransaction": 23,
    "EndTransaction": 24,
    "AbortTransaction": 25,
    "RemoveDelegationToken": 26,
    "RegisterController": 27,
    "ClearElr": 28,
}
"""The ``apiKey`` of each record in Kafka's ``metadata/src/main/resources``."""


def test_records_have_the_numbers_of_kafka() -> None:
    names = {cls.__name__.removesuffix("Record"): number for number, cls in RECORDS.items()}

    assert names == NUMBERS
    for number, cls in RECORDS.items():
        assert (number, 0) == (cls.api.key, cls.api.flexible)


def test_metadata_records_of_kafka_survive_a_round_trip(golden: Path) -> None:
    seen = set()
    for pattern in (
        "*/data/__cluster_metadata-0/*.log",
        "*/data/__cluster_metadata-0/*.checkpoint",
        "*/data/bootstrap.checkpoint",
    ):
        for batch in golden_batches(golden, pattern):
            for record in () if batch.is_control else batch.records():
                assert record.key is None
                assert record.value is not None
                frame, position = read_uvarint(record.value, 0)
                assert FRAME_VERSION == frame
                number, position = read_uvarint(record.value, position)
                version, position = read_uvarint(record.value, position)
                data = record.value[position:]
                assert encode(decode(RECORDS[number], version, data), version) == data
                seen.add((RECORDS[number].__name__.removesuffix("Record"), version))

    assert {
        ("RegisterBroker", 4),
        ("RegisterController", 0),
        ("BrokerRegistrationChange", 0),
        ("BrokerRegistrationChange", 1),
        ("BrokerRegistrationChange", 3),
        ("Topic", 0),
        ("RemoveTopic", 0),
        ("Partition", 2),
        ("PartitionChange", 2),
        ("Config", 0),
        ("FeatureLevel", 0),
        ("ProducerIds", 0),
        ("ClientQuota", 0),
        ("UserScramCredential", 0),
        ("RemoveUserScramCredential", 0),
        ("AccessControlEntry", 0),
        ("RemoveAccessControlEntry", 0),
        ("ClearElr", 0),
        ("BeginTransaction", 0),
        ("EndTransaction", 0),
        ("NoOp", 0),
    } == seen


def test_tagged_fields_are_encoded_in_tag_order() -> None:
    """
    The directories have the highest tag, though Kafka declares them first.
    """
    record = PartitionChangeRecord(
        partition_id=1,
        topic_id=ZERO_UUID,
        leader=2,
        directories=[],
        eligible_leader_replicas=[],
        last_known_elr=[3],
    )

    data = encode(record, 2)

    tagged = "04  01 04 00000002  06 01 01  07 05 02 00000003  08 01 01"
    assert bytes.fromhex(tagged) == data[20:]
    assert record == decode(PartitionChangeRecord, 2, data)
