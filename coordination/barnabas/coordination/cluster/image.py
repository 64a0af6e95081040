"""
The metadata of the cluster in memory: the sum of all records of the metadata log.

Only records change it, at the start as in normal operation. The records of a snapshot are in
Kafka's order (``MetadataImage``): features first, since ``metadata.version`` decides how the rest
is read, then brokers, controllers, topics, configs, quotas, producer ids, access control lists,
SCRAM credentials, delegation tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import IntEnum
from typing import Any, Final
from uuid import UUID

from barnabas.coordination.cluster import features
from barnabas.coordination.cluster.errors import InconsistentMetadata
from barnabas.coordination.cluster.kept_records import KeptRecords
from barnabas.coordination.cluster.partition_registration import PartitionRegistration
from barnabas.coordination.cluster.topic_names import collision_key, is_internal
from barnabas.coordination.security.acl.acls import Acls
from barnabas.coordination.security.acl.bindings import AclBinding
from barnabas.protocol.codec.schema import Message
from barnabas.protocol.internal_topics import metadata_records as records
from barnabas.protocol.structs import replace

Versioned = tuple[Message, int]
"""
A record and the version to write it in.
"""


def config_record(resource_type: int, name: str, option: str, value: str | None) -> Versioned:
    """
    The record that sets an option of a resource, or removes it.
    """
    record = records.ConfigRecord(
        resource_type=resource_type, resource_name=name, name=option, value=value
    )
    return record, 0


def acl_record(acl_id: UUID, entry: AclBinding) -> Versioned:
    """
    The record that adds an access control entry.
    """
    record = records.AccessControlEntryRecord(
        id=acl_id,
        resource_type=entry.resource_type,
        resource_name=entry.resource_name,
        pattern_type=entry.pattern_type,
        principal=entry.principal,
        host=entry.host,
        operation=entry.operation,
        permission_type=entry.permission_type,
    )
    return record, 0


class ConfigResourceType(IntEnum):
    """
    The type of a resource with configs, with Kafka's numbers (``ConfigResource.Type``).
    """

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class Topic:
    """
    A topic of the cluster.

    Its partitions are numbered from 0 without gaps, once the batch that made them is applied.
    """

    __slots__ = ("id", "is_internal", "name", "partitions")

    def __init__(self, name: str, topic_id: UUID) -> None:
        self.name = name
        self.id = topic_id
        self.partitions: dict[int, PartitionRegistration] = {}
        self.is_internal = is_internal(name)

    def __repr__(self) -> str:
        return f"Topic({self.name!r}, {self.id}, {len(self.partitions)} partitions)"


class MetadataImage:
    """
    Features, nodes, topics, configs, producer ids and access control of the cluster.

    Invariants:

    1. Only :meth:`apply` changes it.
    2. A topic is the same object by name and by id.
    3. Each config has a value, and each resource in ``configs`` a config.

    Used on the event loop's thread only.
    """

    __slots__ = (
        "acls",
        "brokers",
        "collisions",
        "config_changes",
        "configs",
        "controllers",
        "feature_levels",
        "kept",
        "next_producer_id",
        "on_client_quota",
        "topics_by_id",
        "topics_by_name",
    )

    def __init__(self) -> None:
        self.feature_levels: dict[str, int] = {}
        self.brokers: dict[int, records.RegisterBrokerRecord] = {}
        self.controllers: dict[int, records.RegisterControllerRecord] = {}
        self.topics_by_name: dict[str, Topic] = {}
        self.topics_by_id: dict[UUID, Topic] = {}
        self.collisions: dict[str, list[str]] = {}
        self.configs: dict[tuple[int, str], dict[str, str]] = {}
        self.config_changes = 0
        """How often a config was set or removed."""
        self.next_producer_id = -1
        self.acls = Acls()
        self.kept = KeptRecords()
        self.on_client_quota: Callable[[records.ClientQuotaRecord], object] = lambda _: None
        """Called with each client quota that is set or removed."""

    @property
    def is_empty(self) -> bool:
        """
        Whether there is no ``metadata.version``: no controller has ever led the log.
        """
        return features.METADATA_VERSION not in self.feature_levels

    @property
    def metadata_version(self) -> int:
        return self.feature_levels.get(
            features.METADATA_VERSION, features.BOOTSTRAP_LEVELS[features.METADATA_VERSION]
        )

    @property
    def elr_enabled(self) -> bool:
        """
        Whether eligible leader replicas are kept (KIP-966).
        """
        return self.feature_levels.get(features.ELIGIBLE_LEADER_REPLICAS, 0) > 0

    def config(self, resource_type: int, name: str) -> Mapping[str, str]:
        """
        The configs stored for a resource, by name; empty when there are none.
        """
        return self.configs.get((resource_type, name), _NO_CONFIG)

    def apply(self, record: Message) -> None:
        """
        Apply one record.

        Raises:
            InconsistentMetadata: it contradicts earlier records, as in a damaged log.
            UnsupportedFeatureLevel: it finalizes a feature that this release does not know.
        """
        _APPLY[type(record)](self, record)

    def as_records(self) -> Iterator[Versioned]:
        """
        The records of a snapshot of this image, in order.
        """
        version = self.metadata_version
        yield from self._feature_records()
        for broker in self.brokers.values():
            yield broker, features.register_broker_version(version)
        for controller in self.controllers.values():
            yield controller, 0
        for topic in self.topics_by_id.values():
            yield records.TopicRecord(name=topic.name, topic_id=topic.id), 0
            for partition_id, partition in topic.partitions.items():
                yield partition.to_record(topic.id, partition_id, version)
        yield from self._config_records()
        yield from self._kept(records.ClientQuotaRecord)
        if self.next_producer_id >= 0:
            # As in Kafka a snapshot does not keep the owner of the last block.
            yield (
                records.ProducerIdsRecord(
                    broker_id=-1, broker_epoch=-1, next_producer_id=self.next_producer_id
                ),
                0,
            )
        for acl_id, entry in self.acls.items():
            yield acl_record(acl_id, entry)
        yield from self._kept(records.UserScramCredentialRecord)
        yield from self._kept(records.DelegationTokenRecord)

    def _feature_records(self) -> Iterator[Versioned]:
        names = sorted(self.feature_levels, key=lambda name: name != features.METADATA_VERSION)
        for name in names:
            level = self.feature_levels[name]
            yield records.FeatureLevelRecord(name=name, feature_level=level), 0

    def _config_records(self) -> Iterator[Versioned]:
        for (resource_type, resource_name), config in self.configs.items():
            for name, value in config.items():
                yield config_record(resource_type, resource_name, name, value)

    def _kept(self, kind: type[Message]) -> Iterator[Versioned]:
        return ((record, 0) for record in self.kept.of_type(kind))

    # One method for each type of record.

    def _apply_feature(self, record: records.FeatureLevelRecord) -> None:
        features.check_feature_level(record.name, record.feature_level)
        if record.feature_level == 0:
            self.feature_levels.pop(record.name, None)
        else:
            self.feature_levels[record.name] = record.feature_level

    def _apply_register_broker(self, record: records.RegisterBrokerRecord) -> None:
        self.brokers[record.broker_id] = record

    def _apply_unregister_broker(self, record: records.UnregisterBrokerRecord) -> None:
        self._broker(record.broker_id, record.broker_epoch)
        del self.brokers[record.broker_id]

    def _apply_fence(self, record: records.FenceBrokerRecord) -> None:
        broker = self._broker(record.id, record.epoch)
        self.brokers[record.id] = replace(broker, fenced=True)

    def _apply_unfence(self, record: records.UnfenceBrokerRecord) -> None:
        broker = self._broker(record.id, record.epoch)
        self.brokers[record.id] = replace(broker, fenced=False)

    def _apply_registration_change(self, record: records.BrokerRegistrationChangeRecord) -> None:
        broker = self._broker(record.broker_id, record.broker_epoch)
        changes: dict[str, Any] = {}
        if record.fenced:
            changes["fenced"] = record.fenced > 0
        if record.in_controlled_shutdown:
            changes["in_controlled_shutdown"] = True
        if record.log_dirs:
            changes["log_dirs"] = record.log_dirs
        if record.cordoned_log_dirs is not None:
            changes["cordoned_log_dirs"] = record.cordoned_log_dirs
        self.brokers[record.broker_id] = replace(broker, **changes)

    def _broker(self, broker_id: int, epoch: int) -> records.RegisterBrokerRecord:
        broker = self.brokers.get(broker_id)
        if broker is None or broker.broker_epoch != epoch:
            raise InconsistentMetadata(f"no broker {broker_id} is registered with epoch {epoch}")
        return broker

    def _apply_register_controller(self, record: records.RegisterControllerRecord) -> None:
        self.controllers[record.controller_id] = record

    def _apply_topic(self, record: records.TopicRecord) -> None:
        if record.name in self.topics_by_name or record.topic_id in self.topics_by_id:
            raise InconsistentMetadata(f"topic {record.name} or its id is there already")
        topic = Topic(record.name, record.topic_id)
        self.topics_by_name[record.name] = self.topics_by_id[record.topic_id] = topic
        key = collision_key(record.name)
        if key is not None:
            self.collisions.setdefault(key, []).append(record.name)

    def _apply_remove_topic(self, record: records.RemoveTopicRecord) -> None:
        topic = self._topic(record.topic_id)
        del self.topics_by_id[topic.id], self.topics_by_name[topic.name]
        self.configs.pop((ConfigResourceType.TOPIC, topic.name), None)
        key = collision_key(topic.name)
        if key is not None:
            names = self.collisions[key]
            names.remove(topic.name)
            if not names:
                del self.collisions[key]

    def _apply_partition(self, record: records.PartitionRecord) -> None:
        topic = self._topic(record.topic_id)
        topic.partitions[record.partition_id] = PartitionRegistration.from_record(record)

    def _apply_partition_change(self, record: records.PartitionChangeRecord) -> None:
        topic = self._topic(record.topic_id)
        partition = topic.partitions.get(record.partition_id)
        if partition is None:
            raise InconsistentMetadata(
                f"topic {topic.name} has no partition {record.partition_id} to change"
            )
        topic.partitions[record.partition_id] = partition.merge(record)

    def _apply_clear_elr(self, record: records.ClearElrRecord) -> None:
        if not record.topic_name:
            topics = list(self.topics_by_id.values())
        elif record.topic_name in self.topics_by_name:
            topics = [self.topics_by_name[record.topic_name]]
        else:
            raise InconsistentMetadata(f"no topic {record.topic_name} to clear the ELR of")
        for topic in topics:
            for partition_id, partition in topic.partitions.items():
                if partition.eligible_leader_replicas or partition.last_known_elr:
                    topic.partitions[partition_id] = replace(
                        partition,
                        eligible_leader_replicas=(),
                        last_known_elr=(),
                        partition_epoch=partition.partition_epoch + 1,
                    )

    def _topic(self, topic_id: UUID) -> Topic:
        topic = self.topics_by_id.get(topic_id)
        if topic is None:
            raise InconsistentMetadata(f"no topic has the id {topic_id}")
        return topic

    def _apply_config(self, record: records.ConfigRecord) -> None:
        self.config_changes += 1
        resource = (record.resource_type, record.resource_name)
        if record.value is not None:
            self.configs.setdefault(resource, {})[record.name] = record.value
            return
        config = self.configs.get(resource, {})
        config.pop(record.name, None)
        if not config:
            self.configs.pop(resource, None)

    def _apply_producer_ids(self, record: records.ProducerIdsRecord) -> None:
        if record.next_producer_id <= self.next_producer_id:
            raise InconsistentMetadata(
                f"producer ids from {record.next_producer_id} on are taken a second time"
            )
        self.next_producer_id = record.next_producer_id

    def _apply_acl(self, record: records.AccessControlEntryRecord) -> None:
        entry = AclBinding(
            resource_type=record.resource_type,
            resource_name=record.resource_name,
            pattern_type=record.pattern_type,
            principal=record.principal,
            host=record.host,
            operation=record.operation,
            permission_type=record.permission_type,
        )
        reason = entry.reason_invalid()
        if reason is not None:
            raise InconsistentMetadata(f"access control entry {record.id}: {reason}")
        self.acls.add(record.id, entry)

    def _apply_remove_acl(self, record: records.RemoveAccessControlEntryRecord) -> None:
        if not self.acls.has_id(record.id):
            raise InconsistentMetadata(f"no access control entry has the id {record.id}")
        self.acls.remove(record.id)

    def _apply_kept(self, record: Message) -> None:
        self.kept.apply(record)

    def _apply_client_quota(self, record: records.ClientQuotaRecord) -> None:
        self.kept.apply(record)
        self.on_client_quota(record)

    def _apply_nothing(self, record: Message) -> None:
        """
        Ignore a record without effect: an empty one, or one of the migration from ZooKeeper.
        """


_NO_CONFIG: Final[Mapping[str, str]] = {}

_APPLY: Final[Mapping[type[Message], Callable[[MetadataImage, Any], None]]] = {
    records.FeatureLevelRecord: MetadataImage._apply_feature,
    records.RegisterBrokerRecord: MetadataImage._apply_register_broker,
    records.UnregisterBrokerRecord: MetadataImage._apply_unregister_broker,
    records.FenceBrokerRecord: MetadataImage._apply_fence,
    records.UnfenceBrokerRecord: MetadataImage._apply_unfence,
    records.BrokerRegistrationChangeRecord: MetadataImage._apply_registration_change,
    records.RegisterControllerRecord: MetadataImage._apply_register_controller,
    records.TopicRecord: MetadataImage._apply_topic,
    records.RemoveTopicRecord: MetadataImage._apply_remove_topic,
    records.PartitionRecord: MetadataImage._apply_partition,
    records.PartitionChangeRecord: MetadataImage._apply_partition_change,
    records.ClearElrRecord: MetadataImage._apply_clear_elr,
    records.ConfigRecord: MetadataImage._apply_config,
    records.ProducerIdsRecord: MetadataImage._apply_producer_ids,
    records.AccessControlEntryRecord: MetadataImage._apply_acl,
    records.RemoveAccessControlEntryRecord: MetadataImage._apply_remove_acl,
    records.NoOpRecord: MetadataImage._apply_nothing,
    records.ZkMigrationStateRecord: MetadataImage._apply_nothing,
    **dict.fromkeys(KeptRecords.types(), MetadataImage._apply_kept),
    records.ClientQuotaRecord: MetadataImage._apply_client_quota,
}
