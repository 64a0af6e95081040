"""
What a reader of committed records sees, and what a group has committed.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient

from tests.support.broker_process import wait_for

PATIENCE_S: Final = 180.0


def read_committed(bootstrap: str, topic: str, partitions: int = 1) -> list[list[bytes]]:
    """
    The values of each partition, up to its end.

    Raises:
        TimeoutError: some partition has no end within ``PATIENCE_S`` seconds.
    """
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    # Without an offset it asks for the group's, and never again if the coordinator is not ready.
    consumer.assign([TopicPartition(topic, each, OFFSET_BEGINNING) for each in range(partitions)])
    values: list[list[bytes]] = [[] for _ in range(partitions)]
    unread = set(range(partitions))
    deadline = time.monotonic() + PATIENCE_S
    try:
        while unread:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{topic} has no end in {unread} after {values}"[:2000])
            message = consumer.poll(1.0)
            if message is None:
                continue
            partition, error = message.partition(), message.error()
            if error is None:
                assert partition is not None
                values[partition].append(message.value() or b"")
            elif error.code() == KafkaError._PARTITION_EOF:
                # Records that come meanwhile give their partition a second end.
                unread.discard(partition or 0)
    finally:
        consumer.close()
    return values


def group_offsets(bootstrap: str, group: str) -> Mapping[tuple[str, int], int]:
    """
    The offsets that a group has committed, by topic and partition.
    """
    admin = AdminClient({"bootstrap.servers": bootstrap})
    found: list[list[TopicPartition]] = []

    def is_known() -> bool:
        [future] = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]).values()
        try:
            found.append(future.result(PATIENCE_S).topic_partitions)
        except KafkaException as error:
            # A broker that has just started loads its groups, and this client does not ask again.
            if error.args[0].code() != KafkaError.COORDINATOR_LOAD_IN_PROGRESS:
                raise
        return bool(found)

    wait_for(is_known, f"the group {group} to be loaded", PATIENCE_S)
    return {(each.topic, each.partition): each.offset for each in found[0]}
