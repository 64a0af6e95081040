"""
The records of a node's start, of the failure of a log directory, and of a stop.

An Apache Kafka that is both broker and controller writes the same records in the same order::

    start   LEADER_CHANGE (a control batch, by MetadataLog)
            a fresh log:  BEGIN_TRANSACTION, the records of bootstrap.checkpoint,
                          min.insync.replicas for the cluster, END_TRANSACTION
            REGISTER_CONTROLLER
            after a kill: PARTITION_CHANGE for what the killed broker led
            REGISTER_BROKER, whose offset is the broker epoch
            BROKER_REGISTRATION_CHANGE: no cordoned directories
            BROKER_REGISTRATION_CHANGE: unfenced, PARTITION_CHANGE: led again
    failure PARTITION_CHANGE for what was led in a log directory that has failed
            BROKER_REGISTRATION_CHANGE: the directories that are left
    stop    BROKER_REGISTRATION_CHANGE: in controlled shutdown, PARTITION_CHANGE: without a leader
            BROKER_REGISTRATION_CHANGE: fenced

All functions here are pure functions of the image (Kafka's ``ActivationRecordsGenerator``,
``ClusterControlManager`` and ``ReplicationControlManager``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final, TypeVar
from uuid import UUID

from barnabas.coordination.cluster import features
from barnabas.coordination.cluster.image import (
    ConfigResourceType,
    MetadataImage,
    Topic,
    Versioned,
    config_record,
)
from barnabas.coordination.cluster.partition_changes import (
    MIN_INSYNC_REPLICAS,
    ElectionDefaults,
    change_partition,
)
from barnabas.coordination.cluster.partition_registration import NO_LEADER, PartitionRegistration
from barnabas.protocol.internal_topics import metadata_records as records
from barnabas.protocol.structs import struct

T = TypeVar("T")

PLAINTEXT: Final = 0
BOOTSTRAP_TRANSACTION: Final = "Bootstrap records"
FAILOVER: Final = "Controller failover"

FENCE, UNFENCE = 1, -1
IN_CONTROLLED_SHUTDOWN: Final = 1


@struct
class ListenerEndpoint:
    """
    The address of a node for a listener.
    """

    name: str
    host: str
    port: int
    security_protocol: int = PLAINTEXT


@struct(kw_only=True)
class ThisNode:
    """
    The registration data of a node.
    """

    node_id: int
    incarnation_id: UUID  # new at each start
    endpoints: Sequence[ListenerEndpoint]
    log_dirs: Sequence[UUID]  # the ids of the directories that work
    rack: str | None = None
    controller_endpoints: Sequence[ListenerEndpoint] = ()


def activation_records(
    image: MetadataImage,
    bootstrap: Sequence[Versioned],
    defaults: ElectionDefaults,
    *,
    in_transaction: bool,
) -> list[Versioned]:
    """
    The first records of a new leader.

    Args:
        bootstrap: the records of ``bootstrap.checkpoint``.
        in_transaction: whether the log ends within a transaction, which is aborted.
    """
    made: list[Versioned] = []
    if in_transaction:
        made.append((records.AbortTransactionRecord(reason=FAILOVER), 0))
    if not image.is_empty:
        return made
    levels = {
        record.name: record.feature_level
        for record, _ in bootstrap
        if isinstance(record, records.FeatureLevelRecord)
    }
    made.append((records.BeginTransactionRecord(name=BOOTSTRAP_TRANSACTION), 0))
    made += bootstrap
    if levels.get(features.ELIGIBLE_LEADER_REPLICAS, 0) > 0:
        # The eligible leader replicas depend on it: it has to be the same on all brokers (KIP-966).
        minimum = defaults[MIN_INSYNC_REPLICAS]
        made.append(config_record(ConfigResourceType.BROKER, "", MIN_INSYNC_REPLICAS, minimum))
    made.append((records.EndTransactionRecord(), 0))
    return made


def controller_registration(image: MetadataImage, node: ThisNode) -> list[Versioned]:
    """
    The registration of this node as the controller.
    """
    if image.metadata_version < features.CONTROLLER_REGISTRATION_SINCE:
        return []
    registration = records.RegisterControllerRecord(
        controller_id=node.node_id,
        incarnation_id=node.incarnation_id,
        zk_migration_ready=False,
        end_points=_endpoints(records.ControllerEndpoint, node.controller_endpoints),
        features=_features(records.ControllerFeature),
    )
    return [(registration, 0)]


def broker_registration(image: MetadataImage, node: ThisNode, epoch: int) -> Versioned:
    """
    The registration of this node as a broker, fenced until it is ready.

    Args:
        epoch: the broker epoch, which is the offset of this record.
    """
    version = features.register_broker_version(image.metadata_version)
    registration = records.RegisterBrokerRecord(
        broker_id=node.node_id,
        incarnation_id=node.incarnation_id,
        broker_epoch=epoch,
        end_points=_endpoints(records.BrokerEndpoint, node.endpoints),
        features=_features(records.BrokerFeature),
        rack=node.rack,
        log_dirs=list(node.log_dirs) if version >= 3 else [],
    )
    return registration, version


def _endpoints(make: Callable[..., T], endpoints: Sequence[ListenerEndpoint]) -> list[T]:
    return [
        make(
            name=each.name,
            host=each.host,
            port=each.port,
            security_protocol=each.security_protocol,
        )
        for each in endpoints
    ]


def _features(make: Callable[..., T]) -> list[T]:
    return [
        make(name=name, min_supported_version=low, max_supported_version=high)
        for name, (low, high) in features.SUPPORTED_FEATURES.items()
    ]


def broker_shutdown(
    image: MetadataImage, broker_id: int, *, clean: bool, defaults: ElectionDefaults
) -> list[Versioned]:
    """
    The removal of a broker's last incarnation from the partitions, when the broker starts again.

    Args:
        clean: whether it was stopped cleanly, with all records on the disk.
    """
    killed = not clean and image.elr_enabled
    made: list[Versioned] = []
    for topic, index, partition in _partitions(image):
        is_eligible = broker_id in partition.eligible_leader_replicas
        if broker_id not in partition.isr and not (killed and is_eligible):
            continue
        made += change_partition(
            image,
            topic,
            index,
            partition,
            defaults=defaults,
            removed=None if killed else broker_id,
            killed=broker_id if killed else None,
        )
    return made


def no_cordoned_directories(image: MetadataImage, broker_id: int) -> list[Versioned]:
    """
    The report of a broker that takes new partitions in all of its directories (KIP-1066).
    """
    broker = image.brokers[broker_id]
    if image.metadata_version < features.CORDONED_DIRECTORIES_SINCE:
        return []
    if broker.cordoned_log_dirs == []:
        return []
    change = records.BrokerRegistrationChangeRecord(
        broker_id=broker_id, broker_epoch=broker.broker_epoch, cordoned_log_dirs=[]
    )
    return [(change, 3)]


def unfencing(image: MetadataImage, broker_id: int, defaults: ElectionDefaults) -> list[Versioned]:
    """
    The records of a broker that is ready: it leads the partitions without a leader that it can
    lead.
    """
    broker = image.brokers[broker_id]
    unfence = records.BrokerRegistrationChangeRecord(
        broker_id=broker_id, broker_epoch=broker.broker_epoch, fenced=UNFENCE
    )
    made: list[Versioned] = [(unfence, 0)]
    for topic, index, partition in _partitions(image):
        if partition.leader == NO_LEADER:
            made += change_partition(
                image, topic, index, partition, defaults=defaults, added=broker_id
            )
    return made


def controlled_shutdown(
    image: MetadataImage, broker_id: int, defaults: ElectionDefaults
) -> list[Versioned]:
    """
    The records of a broker that begins to stop: it resigns from all partitions.
    """
    broker = image.brokers[broker_id]
    made: list[Versioned] = []
    if not broker.in_controlled_shutdown:
        change = records.BrokerRegistrationChangeRecord(
            broker_id=broker_id,
            broker_epoch=broker.broker_epoch,
            in_controlled_shutdown=IN_CONTROLLED_SHUTDOWN,
        )
        made.append((change, 1))
    return made + _removal(image, broker_id, defaults)


def fencing(image: MetadataImage, broker_id: int, defaults: ElectionDefaults) -> list[Versioned]:
    """
    The records of a broker that has stopped.
    """
    broker = image.brokers[broker_id]
    fence = records.BrokerRegistrationChangeRecord(
        broker_id=broker_id, broker_epoch=broker.broker_epoch, fenced=FENCE
    )
    return [*_removal(image, broker_id, defaults), (fence, 0)]


def failed_directories(
    image: MetadataImage, broker_id: int, online: Collection[UUID], defaults: ElectionDefaults
) -> list[Versioned]:
    """
    The records of a broker whose directories have failed, except those *online*: partitions in a
    failed one have no leader any more (KIP-858).
    """
    broker = image.brokers[broker_id]
    lost = [directory for directory in broker.log_dirs if directory not in online]
    if not lost:
        return []
    made: list[Versioned] = []
    for directory in lost:
        made += _removal(image, broker_id, defaults, directory)
    change = records.BrokerRegistrationChangeRecord(
        broker_id=broker_id,
        broker_epoch=broker.broker_epoch,
        log_dirs=[directory for directory in broker.log_dirs if directory in online],
    )
    return [*made, (change, 2)]


def _removal(
    image: MetadataImage, broker_id: int, defaults: ElectionDefaults, directory: UUID | None = None
) -> list[Versioned]:
    """
    Remove a broker from the ISRs of all partitions, or of those in *directory*.
    """
    made: list[Versioned] = []
    for topic, index, partition in _partitions(image):
        if directory not in (None, *partition.directories):
            continue
        if broker_id in partition.isr:
            made += change_partition(
                image, topic, index, partition, defaults=defaults, removed=broker_id
            )
    return made


def _partitions(image: MetadataImage) -> Iterator[tuple[Topic, int, PartitionRegistration]]:
    for topic in image.topics_by_id.values():
        for index, partition in topic.partitions.items():
            yield topic, index, partition
