"""
Topics of a cluster: list, describe, create, alter and delete.

Requests that change something are sent once. A retry after a lost connection could report a change
that had succeeded as a failure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from barnabas.client.cluster import Cluster
from barnabas.client.errors import BrokerError
from barnabas.protocol.codec.schema import ZERO_UUID
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from barnabas.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from barnabas.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from barnabas.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

BROKER_DEFAULT: Final = -1
"""Lets the broker choose a number of partitions or replicas (KIP-464)."""

_TOPIC: Final = 2
"""The type of a topic among resources with configs (Kafka's ``ConfigResource.Type``)."""
_SET, _DELETE = 0, 1


class ConfigSource(IntEnum):
    """
    The origin of a config's value (Kafka's ``DescribeConfigsResponse.ConfigSource``).
    """

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5


@dataclass(frozen=True)
class PartitionInfo:
    partition: int
    leader: int
    """The id of the leader's node; -1 for an offline partition."""
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


@dataclass(frozen=True)
class TopicInfo:
    name: str
    is_internal: bool
    partitions: tuple[PartitionInfo, ...]

    @property
    def replication_factor(self) -> int:
        """
        The number of replicas of the first partition, as Kafka's tools print it.
        """
        return len(self.partitions[0].replicas) if self.partitions else 0


@dataclass(frozen=True)
class TopicConfig:
    name: str
    value: str | None
    """None for a value that the broker does not disclose."""
    source: int
    """A ``ConfigSource``, or a number that a newer broker knows."""


def list_topics(cluster: Cluster, names: Iterable[str] | None = None) -> list[TopicInfo]:
    """
    The topics with these *names*, or all topics, sorted by name.

    Raises:
        BrokerError: a named topic does not exist, or this client may not see it.
    """
    wanted = None if names is None else [MetadataRequestTopic(name=name) for name in names]
    request = MetadataRequest(topics=wanted, allow_auto_topic_creation=False)
    answer = cluster.retried(lambda: cluster.any().ask(request))
    found = []
    for topic in answer.topics:
        if topic.error_code:
            raise BrokerError.of(topic.error_code, f"topic {topic.name}")
        partitions = [
            PartitionInfo(
                each.partition_index,
                each.leader_id,
                tuple(each.replica_nodes),
                tuple(each.isr_nodes),
            )
            for each in topic.partitions
        ]
        partitions.sort(key=lambda each: each.partition)
        found.append(TopicInfo(topic.name, topic.is_internal, tuple(partitions)))
    return sorted(found, key=lambda topic: topic.name)


def create_topic(
    cluster: Cluster,
    name: str,
    partitions: int = BROKER_DEFAULT,
    replication_factor: int = BROKER_DEFAULT,
    configs: Mapping[str, str] | None = None,
) -> tuple[int, int]:
    """
    Create a topic, wait until brokers know its leaders, and return how many partitions and replicas
    it has.

    Raises:
        BrokerError: the broker refuses, for example because the topic exists.
    """
    topic = CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replication_factor,
        assignments=[],
        configs=[
            CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()
        ],
    )
    request = CreateTopicsRequest(
        topics=[topic], timeout_ms=cluster.settings.timeout_ms, validate_only=False
    )
    (made,) = cluster.any().ask(request).topics
    if made.error_code:
        raise BrokerError.of(made.error_code, f"topic {name}", made.error_message)
    # Brokers of a cluster learn of a topic after the controller has answered.
    cluster.retried(lambda: _ensure_usable(cluster, name))
    return made.num_partitions, made.replication_factor


def _ensure_usable(cluster: Cluster, name: str) -> None:
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False
    )
    (topic,) = cluster.any().ask(request).topics
    for each in (topic, *topic.partitions):
        # A client may be allowed to create a topic that it must not see.
        if each.error_code not in (0, ErrorCode.TOPIC_AUTHORIZATION_FAILED):
            raise BrokerError.of(each.error_code, f"topic {name}")


def delete_topic(cluster: Cluster, name: str) -> None:
    """
    Raises:
        BrokerError: the broker refuses.
    """
    request = DeleteTopicsRequest(
        topics=[DeleteTopicState(name=name, topic_id=ZERO_UUID)],
        topic_names=[name],
        timeout_ms=cluster.settings.timeout_ms,
    )
    (deleted,) = cluster.any().ask(request).responses
    if deleted.error_code:
        raise BrokerError.of(deleted.error_code, f"topic {name}", deleted.error_message)


def add_partitions(cluster: Cluster, name: str, count: int) -> None:
    """
    Let the topic have *count* partitions in all.

    Raises:
        BrokerError: the broker refuses, for example because the topic has as many already.
    """
    request = CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name=name, count=count, assignments=None)],
        timeout_ms=cluster.settings.timeout_ms,
        validate_only=False,
    )
    (result,) = cluster.any().ask(request).results
    if result.error_code:
        raise BrokerError.of(result.error_code, f"topic {name}", result.error_message)


def alter_configs(
    cluster: Cluster, name: str, values: Mapping[str, str], unset: Sequence[str] = ()
) -> None:
    """
    Set configs of a topic, and return those in *unset* to the broker's defaults. Other configs stay
    (KIP-339).

    Raises:
        BrokerError: the broker refuses; no config has changed.
    """
    changes = [
        *(AlterableConfig(name=key, config_operation=_SET, value=values[key]) for key in values),
        *(AlterableConfig(name=key, config_operation=_DELETE, value=None) for key in unset),
    ]
    resource = AlterConfigsResource(resource_type=_TOPIC, resource_name=name, configs=changes)
    request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=False)
    (result,) = cluster.any().ask(request).responses
    if result.error_code:
        raise BrokerError.of(result.error_code, f"topic {name}", result.error_message)


def topic_configs(cluster: Cluster, name: str) -> list[TopicConfig]:
    """
    Every config of a topic, sorted by name.

    Raises:
        BrokerError: the topic does not exist, or this client may not see its configs.
    """
    resource = DescribeConfigsResource(
        resource_type=_TOPIC, resource_name=name, configuration_keys=None
    )
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=False)
    (result,) = cluster.retried(lambda: cluster.any().ask(request)).results
    if result.error_code:
        raise BrokerError.of(result.error_code, f"topic {name}", result.error_message)
    found = [
        TopicConfig(
            config.name, None if config.is_sensitive else config.value, config.config_source
        )
        for config in result.configs
    ]
    return sorted(found, key=lambda config: config.name)
