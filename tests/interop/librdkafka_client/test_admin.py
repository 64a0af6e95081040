"""
Administration of topics and of the cluster with librdkafka; ``test_admin_groups.py`` has groups.
"""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import (
    ElectionType,
    IsolationLevel,
    KafkaError,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclOperation
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._listoffsets import OffsetSpec
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewPartitions, NewTopic

from tests.interop.librdkafka_client.clients import PATIENCE, Clients, fails_with, numbered, values
from tests.support.broker_process import BrokerProcess

Listed: Any = OffsetSpec
"""
Its methods lack some type hints.
"""


def test_topics_are_described_with_their_partitions(
    clients: Clients, admin: AdminClient, topic: str
) -> None:
    """
    And with what one may do to them, if that is asked for.
    """
    clients.create(topic, 2)
    wanted = TopicCollection([topic, f"{topic}-missing"])

    futures = admin.describe_topics(wanted, include_authorized_operations=True)
    found = futures[topic].result(PATIENCE)

    assert (topic, False) == (found.name, found.is_internal)
    assert [0, 1] == [part.id for part in found.partitions]
    assert {1} == {len(part.replicas) for part in found.partitions}
    assert {1} == {len(part.isr) for part in found.partitions}
    assert {AclOperation.READ, AclOperation.DELETE} <= set(found.authorized_operations)
    with fails_with(KafkaError.UNKNOWN_TOPIC_OR_PART):
        futures[f"{topic}-missing"].result(PATIENCE)
    plain = admin.describe_topics(TopicCollection([topic]))[topic].result(PATIENCE)
    assert plain.authorized_operations is None


def test_cluster_is_described(admin: AdminClient, broker: BrokerProcess) -> None:
    """
    One node, which is its controller; the same id as in the metadata.
    """
    found = admin.describe_cluster(include_authorized_operations=True).result(PATIENCE)
    metadata = admin.list_topics(timeout=PATIENCE)

    [node] = found.nodes
    assert ("127.0.0.1", broker.port) == (node.host, node.port)
    assert node.id == found.controller.id == metadata.controller_id
    assert found.cluster_id == metadata.cluster_id
    assert {AclOperation.ALTER, AclOperation.CREATE} <= set(found.authorized_operations)


def test_metadata_of_one_or_all_topics_is_returned(
    clients: Clients, admin: AdminClient, topic: str
) -> None:
    clients.create(topic, 3)
    missing = f"{topic}-missing"

    every = admin.list_topics(timeout=PATIENCE)
    one = admin.list_topics(topic, timeout=PATIENCE)
    # The question of an admin client would create it.
    none = clients.consumer(topic).list_topics(missing, timeout=PATIENCE)

    assert [0, 1, 2] == sorted(every.topics[topic].partitions)
    assert [topic] == list(one.topics)
    assert KafkaError.UNKNOWN_TOPIC_OR_PART == none.topics[missing].error.code()


def test_validate_only_creates_no_topic(admin: AdminClient, topic: str) -> None:
    new = NewTopic(topic, 2, 1, config={"compression.type": "gzip"})

    admin.create_topics([new], validate_only=True)[topic].result(PATIENCE)
    assert topic not in admin.list_topics(timeout=PATIENCE).topics
    admin.create_topics([new])[topic].result(PATIENCE)
    more = NewPartitions(topic, 5)
    admin.create_partitions([more], validate_only=True)[topic].result(PATIENCE)
    assert 2 == len(admin.list_topics(topic, timeout=PATIENCE).topics[topic].partitions)
    admin.create_partitions([more])[topic].result(PATIENCE)
    assert 5 == len(admin.list_topics(topic, timeout=PATIENCE).topics[topic].partitions)
    with fails_with(KafkaError.INVALID_PARTITIONS):
        admin.create_partitions([more])[topic].result(PATIENCE)


def test_partitions_may_be_assigned_manually(admin: AdminClient, topic: str) -> None:
    [here] = admin.list_topics(timeout=PATIENCE).brokers
    placed = NewTopic(topic, 2, replica_assignment=[[here], [here]])
    admin.create_topics([placed])[topic].result(PATIENCE)
    more = NewPartitions(topic, 3, replica_assignment=[[here]])
    admin.create_partitions([more])[topic].result(PATIENCE)
    nowhere = NewTopic(f"{topic}-2", 1, replica_assignment=[[here + 1]])

    with fails_with(KafkaError.INVALID_REPLICA_ASSIGNMENT):
        admin.create_topics([nowhere])[f"{topic}-2"].result(PATIENCE)

    assert 3 == len(admin.list_topics(topic, timeout=PATIENCE).topics[topic].partitions)


def test_configs_are_changed_incrementally(
    clients: Clients, admin: AdminClient, topic: str
) -> None:
    """
    Set, deleted, appended to and taken from; those of another topic in the same request.
    """
    other = f"{topic}-too"
    for name in (topic, other):
        clients.create(name, 1, compression_type="gzip")
    Op = AlterConfigOpType

    def alter(name: str, **changes: tuple[AlterConfigOpType, str | None]) -> ConfigResource:
        entries = [
            ConfigEntry(option.replace("_", "."), value, incremental_operation=operation)
            for option, (operation, value) in changes.items()
        ]
        return ConfigResource(ResourceType.TOPIC, name, incremental_configs=entries)

    first = [
        alter(topic, cleanup_policy=(Op.APPEND, "compact"), retention_ms=(Op.SET, "10000")),
        alter(other, cleanup_policy=(Op.SUBTRACT, "delete"), compression_type=(Op.DELETE, None)),
    ]
    for future in admin.incremental_alter_configs(first).values():
        future.result(PATIENCE)

    described = {
        resource.name: future.result(PATIENCE)
        for resource, future in admin.describe_configs(first).items()
    }
    assert ["delete,compact", "10000", "gzip"] == [
        described[topic][name].value
        for name in ("cleanup.policy", "retention.ms", "compression.type")
    ]
    assert ["", "604800000", "producer"] == [
        described[other][name].value
        for name in ("cleanup.policy", "retention.ms", "compression.type")
    ]
    with fails_with(KafkaError.INVALID_CONFIG):
        bad = alter(topic, retention_ms=(Op.SET, "soon"))
        admin.incremental_alter_configs([bad])[bad].result(PATIENCE)
    with fails_with(KafkaError.UNKNOWN_TOPIC_OR_PART):
        missing = alter(f"{topic}-missing", retention_ms=(Op.SET, "1"))
        admin.incremental_alter_configs([missing])[missing].result(PATIENCE)


@pytest.mark.parametrize("level", list(IsolationLevel))
def test_offsets_are_listed_by_specification(
    clients: Clients, admin: AdminClient, topic: str, level: IsolationLevel
) -> None:
    """
    The first, the last, the one with the greatest time, and by a time.
    """
    clients.create(topic, 1)
    producer = clients.producer()
    for time in (100, 400, 200):
        producer.produce(topic, b"", timestamp=time)
        producer.flush(PATIENCE)
    part = TopicPartition(topic, 0)

    def find(spec: OffsetSpec) -> tuple[int, int]:
        found = admin.list_offsets({part: spec}, isolation_level=level)[part].result(PATIENCE)
        return found.offset, found.timestamp

    assert (0, -1) == find(Listed.earliest())
    assert (3, -1) == find(Listed.latest())
    assert (1, 400) == find(Listed.max_timestamp())
    assert (1, 400) == find(Listed.for_timestamp(150))
    assert (-1, -1) == find(Listed.for_timestamp(401))


def test_records_are_deleted_in_many_partitions_at_once(
    clients: Clients, admin: AdminClient, topic: str
) -> None:
    """
    Each up to its own offset, or all of them; beyond the end is an error of that one.
    """
    clients.create(topic, 4)
    for partition in range(4):
        clients.send(topic, partition, numbered(3))
    parts = [TopicPartition(topic, number, offset) for number, offset in enumerate((0, 2, -1, 4))]

    futures = admin.delete_records(parts)

    assert [0, 2, 3] == [futures[part].result(PATIENCE).low_watermark for part in parts[:3]]
    with fails_with(KafkaError.OFFSET_OUT_OF_RANGE):
        futures[parts[3]].result(PATIENCE)
    consumer = clients.consumer(topic)
    consumer.assign([TopicPartition(topic, 1)])
    assert [b"2"] == values(consumer, 1)
    with fails_with(KafkaError._NOENT):
        missing = TopicPartition(f"{topic}-missing", 0, 1)
        admin.delete_records([missing])[missing].result(PATIENCE)


def test_topics_are_deleted_independently(clients: Clients, admin: AdminClient, topic: str) -> None:
    """
    One that is not there does not keep the others.
    """
    clients.create(topic)

    futures = admin.delete_topics([topic, f"{topic}-missing"])

    futures[topic].result(PATIENCE)
    with fails_with(KafkaError.UNKNOWN_TOPIC_OR_PART):
        futures[f"{topic}-missing"].result(PATIENCE)
    assert topic not in admin.list_topics(timeout=PATIENCE).topics


def test_election_of_the_current_leader_is_not_needed(
    clients: Clients, admin: AdminClient, topic: str
) -> None:
    """
    Each partition says for itself that there is nothing to do, or that it is not there.
    """
    clients.create(topic, 1)
    there, missing = TopicPartition(topic, 0), TopicPartition(topic, 9)

    found = admin.elect_leaders(ElectionType.PREFERRED, [there, missing]).result(PATIENCE)

    assert [KafkaError.ELECTION_NOT_NEEDED, KafkaError.UNKNOWN_TOPIC_OR_PART] == [
        found[part].code() for part in (there, missing)
    ]
