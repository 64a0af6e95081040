"""
Records of the metadata log, in few words.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from barnabas.protocol.internal_topics import metadata_records as records

TOPIC_RESOURCE = 2


def partition_record(topic_id: UUID, index: int = 0, **changes: Any) -> records.PartitionRecord:
    """
    A new partition on broker 1.
    """
    facts: dict[str, Any] = {
        "replicas": [1],
        "isr": [1],
        "removing_replicas": [],
        "adding_replicas": [],
        "leader": 1,
        "leader_epoch": 0,
        "partition_epoch": 0,
        "directories": [UUID(int=99)],
    }
    return records.PartitionRecord(partition_id=index, topic_id=topic_id, **facts | changes)


def broker_record(broker_id: int, epoch: int, **changes: Any) -> records.RegisterBrokerRecord:
    """
    The registration of a fenced broker without listeners.
    """
    facts: dict[str, Any] = {
        "incarnation_id": UUID(int=epoch),
        "end_points": [],
        "features": [],
        "rack": None,
    }
    return records.RegisterBrokerRecord(broker_id=broker_id, broker_epoch=epoch, **facts | changes)


def config_record(
    name: str, value: str | None, resource: str = "t", resource_type: int = TOPIC_RESOURCE
) -> records.ConfigRecord:
    return records.ConfigRecord(
        resource_type=resource_type, resource_name=resource, name=name, value=value
    )
