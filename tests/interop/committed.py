"""
What a reader of committed records sees.
"""

from __future__ import annotations

from confluent_kafka import Consumer, TopicPartition

from tests.support.broker_process import BrokerProcess

PATIENCE = 60


def committed(broker: BrokerProcess, topic: str, partitions: int) -> list[list[str]]:
    """
    What a consumer of committed records reads in each partition.
    """
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": f"{topic}-reader",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    consumer.assign([TopicPartition(topic, index, 0) for index in range(partitions)])
    values: list[list[str]] = [[] for _ in range(partitions)]
    at_end: set[int] = set()
    while len(at_end) < partitions:
        message = consumer.poll(PATIENCE)
        assert message is not None, "neither a record nor an end"
        partition, value = message.partition(), message.value()
        assert partition is not None
        if message.error():
            at_end.add(partition)
        else:
            values[partition].append((value or b"").decode())
    consumer.close()
    return values
