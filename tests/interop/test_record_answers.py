"""
The same requests to write and read records, sent to Barnabas and to an Apache Kafka beside it:
every field of the answers is the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import UUID

import pytest
from crc32c import crc32c

from barnabas.protocol.codec.schema import Message
from barnabas.protocol.compression import CompressionType
from barnabas.protocol.messages.create_topics import CreateTopicsRequest
from barnabas.protocol.messages.fetch import ForgottenTopic, ReplicaState
from barnabas.protocol.messages.produce import ProduceRequest, TopicProduceData
from barnabas.protocol.records.batch import ATTRIBUTES_AT, CRC_AT, build_batch
from barnabas.protocol.records.record import SimpleRecord
from tests.support.both_brokers import BothBrokers, check_answers
from tests.support.build import api_request
from tests.support.config_requests import trim
from tests.support.server import (
    START_MS,
    batch,
    fetch_request,
    fetch_topic,
    list_offsets_request,
    produce_request,
    produce_topic,
)
from tests.support.topic_requests import creatable

BY_NAME: Final = 12
"""
The last version of Produce and Fetch in which topics have names.
"""
OWN: Final = frozenset({"log_append_time_ms", "session_id"})
UNKNOWN_ID: Final = UUID(int=99)
SPECIAL_TIMESTAMPS: Final = range(-7, 0)
TOPICS: Final = [
    *(creatable(name, 3, configs={"retention.ms": "-1"}) for name in ("refused", "p", "f", "l")),
    creatable("compacted", configs={"cleanup.policy": "compact"}),
    creatable("timed", configs={"message.timestamp.type": "LogAppendTime"}),
]
GOOD: Final = batch("good")
ONE: Final = batch("x" * 80)
SIZE: Final = len(ONE)


def spoiled(position: int, value: int, size: int = 1) -> bytes:
    """
    A batch of which some bytes are others.
    """
    data = bytearray(batch("spoiled"))
    data[position : position + size] = value.to_bytes(size, signed=value < 0)
    return bytes(data)


def with_codec(number: int) -> bytes:
    """
    A batch that says it is compressed with that codec, and has the checksum of that.
    """
    data = bytearray(GOOD)
    data[ATTRIBUTES_AT + 1] |= number
    data[CRC_AT:ATTRIBUTES_AT] = crc32c(data[ATTRIBUTES_AT:]).to_bytes(4)
    return bytes(data)


def numbered(sequence: int) -> bytes:
    return batch("a", producer_id=7, producer_epoch=0, base_sequence=sequence)


REFUSED: Final = [
    b"",
    GOOD + GOOD,
    *(GOOD[:size] for size in (-1, 11)),
    *(spoiled(16, magic) for magic in (0, 1, 3, -1)),
    *(spoiled(8, length, 4) for length in (-1, 13, 48, 2**31 - 1, 2**31 - 13)),
    GOOD + spoiled(8, 13, 4)[:12],
    GOOD + spoiled(16, 3)[:17],
    spoiled(-1, 7),
    batch("x" * 1_048_588),
    batch("a", base_offset=5),
    batch("a", is_control=True),
    batch("a", producer_id=9, producer_epoch=0),
    bytes(build_batch([], base_offset=0)),
    with_codec(5),
]
"""
What is no batch, and what the log refuses.
"""
TAILS: Final = [b"", *(GOOD[:size] for size in (11, 16, 17, -1))]
TRANSACTIONAL: Final = batch(
    "a", is_transactional=True, producer_id=7, producer_epoch=0, base_sequence=0
)
ZSTD: Final = batch("a", compression=CompressionType.ZSTD)
KEYS: Final = (b"k", None, b"k", None)
WITHOUT_KEYS: Final = bytes(build_batch([SimpleRecord(START_MS, key, b"v") for key in KEYS]))


def produce(*topics: TopicProduceData, acks: int = 1) -> ProduceRequest:
    return ProduceRequest(acks=acks, timeout_ms=30_000, topic_data=list(topics))


def offsets(*asked: tuple[int, int], topic: str = "l", epoch: int = -1) -> Message:
    partitions = [
        {"partition_index": index, "timestamp": timestamp, "current_leader_epoch": epoch}
        for index, timestamp in asked
    ]
    topics = [{"name": topic, "partitions": partitions}]
    return api_request("list_offsets", replica_id=-1, topics=topics)


def end_of_epoch(epoch: int, current: int = -1, *, topic: str = "l", partition: int = 0) -> Message:
    asked = {"partition": partition, "current_leader_epoch": current, "leader_epoch": epoch}
    topics = [{"topic": topic, "partitions": [asked]}]
    return api_request("offset_for_leader_epoch", replica_id=-1, topics=topics)


def fetch(offsets: Mapping[int, int], *, topic: str | UUID = "f", **options: Any) -> Message:
    """
    A fetch without a session. *options* are fields of the request and of each partition.
    """
    of_partitions = ("partition_max_bytes", "current_leader_epoch", "last_fetched_epoch")
    per_partition = {name: options.pop(name) for name in of_partitions if name in options}
    return fetch_request(
        fetch_topic(topic, offsets, **per_partition), **{"session_epoch": -1} | options
    )


Asked = Sequence[tuple[Message, int]]
READY: Final[Asked] = [
    (list_offsets_request(str(topic.name), {index: -1}), 7)
    for topic in TOPICS
    for index in range(topic.num_partitions)
]
"""
Apache Kafka needs a moment until it leads new partitions.
"""
ANSWERS: Final[Mapping[str, Asked]] = {
    "batches that are refused": [
        (produce_request("refused", batch("a", "b", "c")), BY_NAME),
        (trim("refused", (0, 2)), 2),
        *((produce_request("refused", records), BY_NAME) for records in REFUSED),
        (produce_request("refused", batch("d")), BY_NAME),
        *((produce_request("refused", GOOD + tail, partition=1), BY_NAME) for tail in TAILS),
        *((produce_request("compacted", WITHOUT_KEYS), version) for version in (7, BY_NAME)),
        *((produce_request("refused", ZSTD, partition=2), version) for version in (6, 7)),
        (list_offsets_request("refused", dict.fromkeys(range(3), -1)), 7),
    ],
    "produce": [
        *(
            (produce_request("p", batch("a", "b"), acks=acks), version)
            for version in range(3, 13)
            for acks in (1, -1)
        ),
        *((produce_request("p", GOOD, acks=acks), BY_NAME) for acks in (2, -2, 32767)),
        *((produce_request("p", GOOD, partition=index), BY_NAME) for index in (3, -1)),
        (produce_request("nowhere", GOOD), BY_NAME),
        (produce_request(UNKNOWN_ID, GOOD), 13),
        (produce_request("timed", batch("a", timestamp=5)), BY_NAME),
        (
            produce(
                produce_topic("p", {0: batch("a")}),
                produce_topic("nowhere", {}),
                produce_topic("p", {1: batch("b"), 0: batch("c", "d")}),
            ),
            BY_NAME,
        ),
        (
            produce(
                produce_topic("nowhere", {0: GOOD}),
                produce_topic("p", {0: b"", 1: GOOD, 7: GOOD}),
            ),
            BY_NAME,
        ),
        (
            produce(
                produce_topic("p", {0: batch("a", base_offset=5), 1: spoiled(-1, 7)}),
                produce_topic("f", {}),
                produce_topic("p", {2: GOOD}),
            ),
            BY_NAME,
        ),
        *(
            (produce(produce_topic("p", {0: GOOD, 1: with_codec(codec)})), version)
            for codec in (5, 6, 7)
            for version in (3, 6, 7)
        ),
        (produce(produce_topic("p", {0: GOOD, 9: with_codec(5)})), 3),
        *((produce_request("p", numbered(sequence)), BY_NAME) for sequence in (0, 1, 2, 1, 5)),
        (produce(produce_topic("p", {0: GOOD, 1: TRANSACTIONAL})), BY_NAME),
        (produce_request("p", TRANSACTIONAL), BY_NAME),
        (produce(produce_topic("p", {0: GOOD, 1: spoiled(16, 50)})), BY_NAME),
        (produce_request("p", GOOD, transactional_id="t"), BY_NAME),
        (list_offsets_request("p", dict.fromkeys(range(3), -1)), 7),
    ],
    "fetch": [
        *((produce_request("f", ONE, partition=index), 9) for index in (0, 0, 0, 1, 1, 2, 2)),
        *((fetch({0: 0, 2: 1}), version) for version in range(4, 13)),
        (fetch({0: 0}, topic=UNKNOWN_ID), 18),
        (fetch({0: 3}), BY_NAME),
        *(
            (fetch({0: 0}, partition_max_bytes=limit), BY_NAME)
            for limit in (0, 1, SIZE, 2 * SIZE - 1, 2 * SIZE, 2**31 - 1, -5)
        ),
        *((fetch({0: end}, partition_max_bytes=-1), BY_NAME) for end in (3, 4)),
        *(
            (fetch({0: 1, 1: 0, 2: 0}, max_bytes=limit), BY_NAME)
            for limit in (
                *(0, SIZE - 1, SIZE, 2 * SIZE - 1, 2 * SIZE, 3 * SIZE - 1, 3 * SIZE),
                *(4 * SIZE + 1, 5 * SIZE + 1),
            )
        ),
        (fetch({0: 3, 1: 0, 2: 0}, partition_max_bytes=1), BY_NAME),
        (fetch({0: 0}, max_bytes=-1), BY_NAME),
        (fetch({0: 0, 9: 0, -1: 0}), BY_NAME),
        (fetch({0: 0}, topic="nowhere"), BY_NAME),
        (
            fetch_request(
                fetch_topic("f", {1: 7}),
                fetch_topic("f", {}),
                fetch_topic("nowhere", {5: 0}),
                fetch_topic("f", {0: 0, 9: 0}),
                fetch_topic("f", {1: 1}),
                session_epoch=-1,
            ),
            BY_NAME,
        ),
        *((fetch({0: 0}, current_leader_epoch=epoch), BY_NAME) for epoch in (-1, 0, 1)),
        *(
            (fetch({0: 0}, session_id=number, session_epoch=epoch), BY_NAME)
            for number in (0, 5)
            for epoch in (1, 2**31 - 1, -2)
        ),
        (
            fetch(
                {0: 0},
                session_id=5,
                session_epoch=1,
                forgotten_topics_data=[ForgottenTopic(topic="f", partitions=[1])],
            ),
            BY_NAME,
        ),
        *((fetch({0: 0}, replica_id=3, current_leader_epoch=epoch), BY_NAME) for epoch in (-1, 0)),
        (fetch({0: 0}, topic="nowhere", replica_id=3), BY_NAME),
        (fetch({0: 0}, topic=UNKNOWN_ID, replica_state=ReplicaState(replica_id=3)), 18),
        (fetch({0: 0}, isolation_level=2), BY_NAME),
        (fetch({0: 0}, topic="nowhere", isolation_level=-1), BY_NAME),
        (trim("f", (0, 2)), 2),
        *((fetch({0: offset}), BY_NAME) for offset in (-1, 0, 1, 2, 6, 2**62)),
    ],
    "offsets": [
        *(
            (produce_request("l", batch("x", timestamp=timestamp)), 9)
            for timestamp in (100, 50, 200, 150, 200)
        ),
        *((offsets((0, timestamp)), 11) for timestamp in (0, 50, 101, 200, 201, -(2**63))),
        *(
            (offsets((index, timestamp)), version)
            for timestamp in SPECIAL_TIMESTAMPS
            for index in (0, 1)
            for version in range(1, 12)
        ),
        (offsets((1, 0)), 11),
        (offsets((0, -1), (1, -1), (0, -1)), 11),
        (offsets((0, -3), topic="nowhere"), 6),
        (offsets((0, -1), topic="nowhere"), 11),
        (offsets((7, -1)), 11),
        (offsets((0, -1), epoch=3), 11),
        (trim("l", (0, 2)), 2),
        *((offsets((0, timestamp)), 11) for timestamp in (-1, -2)),
        (list_offsets_request("l", {0: -1}, isolation_level=9), 7),
        *(
            (end_of_epoch(epoch, partition=index), version)
            for epoch in (-1, 0, 1)
            for index in (0, 1)
            for version in (2, 3, 4)
        ),
        (end_of_epoch(0, 3), 4),
        (end_of_epoch(0, topic="nowhere"), 4),
    ],
}


@pytest.mark.parametrize("subject", ANSWERS)
def test_answers_are_those_of_kafka(both: BothBrokers, subject: str) -> None:
    topics = CreateTopicsRequest(topics=TOPICS, timeout_ms=10_000)

    check_answers(both, [*READY, *ANSWERS[subject]], prepared_by=[(topics, 7)], own=OWN)
