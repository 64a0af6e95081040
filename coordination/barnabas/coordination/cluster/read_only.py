"""
The records with which a broker serves log directories that it only shows, of whatever node and
cluster they are. They stay in memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.coordination.cluster import features
from barnabas.coordination.cluster.lifecycle import UNFENCE, ThisNode, broker_registration
from barnabas.coordination.cluster.partition_registration import NO_LEADER
from barnabas.protocol.internal_topics import metadata_records as records
from barnabas.storage.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.coordination.cluster.image import MetadataImage, Versioned


def only_broker(image: MetadataImage, node: ThisNode, epoch: int) -> list[Versioned]:
    """
    The records after which *node* is the one broker. Partitions stay as they are.
    """
    made: list[Versioned] = [
        (
            records.UnregisterBrokerRecord(broker_id=broker_id, broker_epoch=broker.broker_epoch),
            0,
        )
        for broker_id, broker in image.brokers.items()
    ]
    unfence = records.BrokerRegistrationChangeRecord(
        broker_id=node.node_id, broker_epoch=epoch, fenced=UNFENCE
    )
    return [*made, broker_registration(image, node, epoch), (unfence, 0)]


def leaders(
    image: MetadataImage, broker_id: int, has_log: Callable[[TopicPartition], bool]
) -> list[Versioned]:
    """
    The records after which the broker leads each partition that has a log here, also in the place
    of another leader, and nobody leads the others. The in-sync replicas stay as they are.
    """
    made: list[Versioned] = []
    version = features.partition_version(image.metadata_version)
    for topic in image.topics_by_id.values():
        for index, partition in topic.partitions.items():
            leader = broker_id if has_log(TopicPartition(topic.name, index)) else NO_LEADER
            if partition.leader != leader:
                change = records.PartitionChangeRecord(
                    partition_id=index, topic_id=topic.id, leader=leader
                )
                made.append((change, version))
    return made
