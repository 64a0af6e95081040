"""
The settings of topics that are created automatically.

Those of internal topics are the ones of Kafka's ``GroupCoordinatorService``,
``TransactionStateManager`` and ``ShareCoordinatorService``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from barnabas.coordination.cluster.topic_names import (
    GROUP_METADATA_TOPIC,
    SHARE_GROUP_STATE_TOPIC,
    TRANSACTION_STATE_TOPIC,
)
from barnabas.coordination.config.coordinators import CoordinationOptions
from barnabas.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig

BROKER_DEFAULT: Final = -1


def default_topic(name: str, config: CoordinationOptions) -> CreatableTopic:
    """
    The topic to create for a name.
    """
    if name == GROUP_METADATA_TOPIC:
        return _topic(
            name,
            config.offsets_topic_num_partitions,
            config.offsets_topic_replication_factor,
            {
                "compression.type": "producer",
                "cleanup.policy": "compact",
                "segment.bytes": str(config.offsets_topic_segment_bytes),
            },
        )
    if name == TRANSACTION_STATE_TOPIC:
        return _topic(
            name,
            config.transaction_state_log_num_partitions,
            config.transaction_state_log_replication_factor,
            {
                "compression.type": "uncompressed",
                "cleanup.policy": "compact",
                "min.insync.replicas": str(config.transaction_state_log_min_isr),
                "segment.bytes": str(config.transaction_state_log_segment_bytes),
                "unclean.leader.election.enable": "false",
            },
        )
    if name == SHARE_GROUP_STATE_TOPIC:
        return _topic(
            name,
            config.share_coordinator_state_topic_num_partitions,
            config.share_coordinator_state_topic_replication_factor,
            {
                "compression.type": "producer",
                "cleanup.policy": "delete",
                "min.insync.replicas": str(config.share_coordinator_state_topic_min_isr),
                "segment.bytes": str(config.share_coordinator_state_topic_segment_bytes),
                "retention.ms": "-1",
            },
        )
    return _topic(name, BROKER_DEFAULT, BROKER_DEFAULT, {})


def _topic(
    name: str, partitions: int, replication_factor: int, configs: Mapping[str, str]
) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replication_factor,
        assignments=[],
        configs=[CreatableTopicConfig(name=name, value=value) for name, value in configs.items()],
    )
