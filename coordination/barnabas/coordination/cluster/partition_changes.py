"""
The record that changes one partition after an event or a request (Kafka's
``PartitionChangeBuilder``, as ``ReplicationControlManager`` uses it).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from typing import Final
from uuid import UUID

from barnabas.coordination.cluster import features
from barnabas.coordination.cluster.assignments import ReplicaAssignment
from barnabas.coordination.cluster.elections import ElectionRules, build_change
from barnabas.coordination.cluster.image import ConfigResourceType, MetadataImage, Topic, Versioned
from barnabas.coordination.cluster.partition_registration import (
    MIGRATING_DIRECTORY,
    PartitionRegistration,
)
from barnabas.protocol.internal_topics import metadata_records as records

MIN_INSYNC_REPLICAS: Final = "min.insync.replicas"
UNCLEAN_ELECTION: Final = "unclean.leader.election.enable"

UNASSIGNED_DIRECTORY: Final = UUID(int=1)
LOST_DIRECTORY: Final = UUID(int=2)

ElectionDefaults = Mapping[str, str]
"""
The topic configs for elections in this node's own configuration, as text: the values where neither
topic nor cluster has one.
"""


class Election(Enum):
    """
    The replicas that may become leader, if the partition needs one.
    """

    AS_CONFIGURED = auto()  # of those in sync; of others if the topic allows it
    CLEAN = auto()  # of those in sync
    PREFERRED = auto()  # of those in sync, the first replica before the one that leads
    UNCLEAN = auto()  # of those in sync; of others if there is none


def change_partition(
    image: MetadataImage,
    topic: Topic,
    index: int,
    partition: PartitionRegistration,
    *,
    defaults: ElectionDefaults,
    added: int | None = None,
    removed: int | None = None,
    killed: int | None = None,
    election: Election = Election.AS_CONFIGURED,
    assignment: ReplicaAssignment | None = None,
) -> list[Versioned]:
    """
    The record that adapts a partition to an event; an empty list if it stays as it is.

    Args:
        defaults: see ``ElectionDefaults``.
        added: a broker that may lead from now on.
        removed, killed, assignment: see ``build_change``.
    """

    def is_acceptable(broker_id: int) -> bool:
        broker = image.brokers.get(broker_id)
        if broker is None or broker_id in (removed, killed):
            return False
        if broker_id != added and (broker.fenced or broker.in_controlled_shutdown):
            return False
        return _is_online(partition, broker)

    change = build_change(
        partition,
        topic.id,
        index,
        ElectionRules(
            is_acceptable=is_acceptable,
            min_isr=min(
                int(_config(image, topic.name, MIN_INSYNC_REPLICAS, defaults)),
                len(partition.replicas),
            ),
            elr_enabled=image.elr_enabled,
            unclean=may_be_unclean(image, topic.name, defaults)
            if election is Election.AS_CONFIGURED
            else election is Election.UNCLEAN,
            preferred=election is Election.PREFERRED,
        ),
        removed=removed,
        killed=killed,
        assignment=assignment,
    )
    if change is None:
        return []
    return [(change, features.partition_version(image.metadata_version))]


def may_be_unclean(image: MetadataImage, topic: str, defaults: ElectionDefaults) -> bool:
    """
    Whether a replica of *topic* that is not in sync may lead, by its configuration.
    """
    return _config(image, topic, UNCLEAN_ELECTION, defaults).lower() == "true"


def _config(image: MetadataImage, topic: str, name: str, defaults: ElectionDefaults) -> str:
    cluster = image.config(ConfigResourceType.BROKER, "")
    return image.config(ConfigResourceType.TOPIC, topic).get(name) or cluster.get(
        name, defaults[name]
    )


def offline_replicas(image: MetadataImage, partition: PartitionRegistration) -> list[int]:
    """
    The replicas on brokers that do not run, or in directories that have failed (Kafka's
    ``KRaftMetadataCache.getOfflineReplicas``).
    """
    brokers = image.brokers
    return [
        replica
        for replica in partition.replicas
        if (broker := brokers.get(replica)) is None
        or broker.fenced
        or not _is_online(partition, broker)
    ]


def _is_online(partition: PartitionRegistration, broker: records.RegisterBrokerRecord) -> bool:
    """
    Whether the directory of the broker's replica is online, by the metadata (KIP-858).
    """
    if broker.broker_id not in partition.replicas:
        return False
    directory = partition.directories[partition.replicas.index(broker.broker_id)]
    if directory in (UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY):
        return True
    return directory != LOST_DIRECTORY and (not broker.log_dirs or directory in broker.log_dirs)
