"""
What is in the directories that are kept of each release.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType
from confluent_kafka.cimpl import NewTopic

from tests.interop.committed import group_offsets, read_committed

ARCHIVES: Final = Path(__file__).parent
SETTINGS: Final = {"offsets.topic.num.partitions": "1", "transaction.state.log.num.partitions": "1"}
PATIENCE_S: Final = 60.0
CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
RECORDS: Final = 40
GROUP: Final = "readers"
COMMITTED: Final = 17
TRANSACTIONS: Final = "transactions"
CONFIGURED: Final = "none"
RETENTION_MS: Final = str(20 * 365 * 24 * 3_600_000)
"""The directory is opened years later."""


def fill(bootstrap: str) -> None:
    """
    A topic for each codec, one with a committed and an aborted transaction, and a group.
    """
    admin = AdminClient({"bootstrap.servers": bootstrap})
    config = {"retention.ms": RETENTION_MS}
    new = [NewTopic(name, 1, config=config) for name in (*CODECS, TRANSACTIONS)]
    for future in admin.create_topics(new).values():
        future.result(PATIENCE_S)
    for codec in CODECS:
        producer = Producer({"bootstrap.servers": bootstrap, "compression.type": codec})
        for value in values(codec):
            producer.produce(codec, value, b"key", headers={"codec": codec.encode()})
        assert 0 == producer.flush(PATIENCE_S)
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "writer"})
    producer.init_transactions(PATIENCE_S)
    for end in (producer.commit_transaction, producer.abort_transaction):
        producer.begin_transaction()
        for value in values(TRANSACTIONS):
            producer.produce(TRANSACTIONS, value, b"key")
        end(PATIENCE_S)
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": GROUP})
    consumer.commit(offsets=[TopicPartition(CONFIGURED, 0, COMMITTED)], asynchronous=False)
    consumer.close()


def values(topic: str) -> list[bytes]:
    """
    The values of a topic that a reader of committed records sees.
    """
    return [b"%s %d" % (topic.encode(), number) for number in range(RECORDS)]


def read(bootstrap: str, topic: str) -> list[bytes]:
    [found] = read_committed(bootstrap, topic)
    return found


def committed(bootstrap: str, group: str = GROUP) -> int:
    return group_offsets(bootstrap, group)[CONFIGURED, 0]


def retention(bootstrap: str) -> str:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    resource = ConfigResource(ResourceType.TOPIC, CONFIGURED)
    (future,) = admin.describe_configs([resource]).values()
    return str(future.result(PATIENCE_S)["retention.ms"].value)
