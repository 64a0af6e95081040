"""
Administration of groups with librdkafka.
"""

from __future__ import annotations

from confluent_kafka import (
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    ConsumerGroupType,
    KafkaError,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclOperation

from tests.interop.librdkafka_client.clients import (
    PATIENCE,
    Clients,
    assigned,
    eventually,
    fails_with,
    numbered,
    offsets,
)

NO_OFFSET = -1001


def listed(admin: AdminClient, **chosen: object) -> dict[str, ConsumerGroupState]:
    """
    The groups, with their states.
    """
    found = admin.list_consumer_groups(**chosen).result(PATIENCE)
    assert not found.errors
    return {group.group_id: group.state for group in found.valid}


def of_group(
    admin: AdminClient, group: str, parts: list[TopicPartition] | None = None
) -> dict[tuple[str, int], int]:
    """
    The offsets that the group has committed.
    """
    wanted = ConsumerGroupTopicPartitions(group, parts)
    found = admin.list_consumer_group_offsets([wanted])[group].result(PATIENCE)
    return offsets(found.topic_partitions)


def test_groups_are_listed_by_state_and_type(
    clients: Clients, admin: AdminClient, topic: str
) -> None:
    clients.create(topic)
    busy, idle = f"{topic}-busy", f"{topic}-idle"
    consumer = clients.consumer(busy)
    consumer.subscribe([topic])
    eventually(lambda: len(assigned(consumer)) == 2, consumer)
    clients.consumer(idle).commit(offsets=[TopicPartition(topic, 0, 1)], asynchronous=False)
    stable, empty = ConsumerGroupState.STABLE, ConsumerGroupState.EMPTY

    assert {busy: stable, idle: empty}.items() <= listed(admin).items()
    assert busy in listed(admin, states={stable})
    assert idle not in listed(admin, states={stable})
    assert idle in listed(admin, states={stable, empty})
    assert {busy, idle} <= listed(admin, types={ConsumerGroupType.CLASSIC}).keys()
    assert busy not in listed(admin, types={ConsumerGroupType.CONSUMER})


def test_group_is_described_with_its_members(
    clients: Clients, admin: AdminClient, topic: str
) -> None:
    """
    Who they are, what they read, and what one may do to the group.
    """
    clients.create(topic)
    consumer = clients.consumer(
        topic,
        client_id="the member",
        group_instance_id="the instance",
        partition_assignment_strategy="roundrobin",
    )
    consumer.subscribe([topic])
    eventually(lambda: len(assigned(consumer)) == 2, consumer)

    futures = admin.describe_consumer_groups([topic], include_authorized_operations=True)
    group = futures[topic].result(PATIENCE)
    [member] = group.members

    assert (topic, "roundrobin", False) == (
        group.group_id,
        group.partition_assignor,
        group.is_simple_consumer_group,
    )
    assert (ConsumerGroupState.STABLE, ConsumerGroupType.CLASSIC) == (group.state, group.type)
    assert ("the member", "the instance") == (member.client_id, member.group_instance_id)
    assert consumer.memberid() == member.member_id
    assert {(topic, 0), (topic, 1)} == offsets(member.assignment.topic_partitions).keys()
    assert {AclOperation.READ, AclOperation.DELETE} <= set(group.authorized_operations)


def test_unknown_group_is_described_as_dead(admin: AdminClient, topic: str) -> None:
    """
    Described as one without members; it cannot be deleted.
    """
    group = admin.describe_consumer_groups([topic])[topic].result(PATIENCE)

    assert (ConsumerGroupState.DEAD, []) == (group.state, group.members)
    with fails_with(KafkaError.GROUP_ID_NOT_FOUND):
        admin.delete_consumer_groups([topic])[topic].result(PATIENCE)


def test_group_offsets_can_be_changed_only_without_members(
    clients: Clients, admin: AdminClient, topic: str
) -> None:
    """
    A member begins with what was set; while it is there, nothing can be set.
    """
    clients.create(topic)
    clients.send(topic, 0, numbered(5))
    wanted = ConsumerGroupTopicPartitions(
        topic, [TopicPartition(topic, 0, 3), TopicPartition(topic, 1, 0)]
    )

    admin.alter_consumer_group_offsets([wanted])[topic].result(PATIENCE)
    assert {(topic, 0): 3, (topic, 1): 0} == of_group(admin, topic)
    assert {(topic, 1): 0} == of_group(admin, topic, [TopicPartition(topic, 1)])
    assert {(topic, 7): NO_OFFSET} == of_group(admin, topic, [TopicPartition(topic, 7)])

    consumer = clients.consumer(topic)
    consumer.subscribe([topic])
    message = consumer.poll(PATIENCE)
    assert message is not None
    assert 3 == message.offset()
    refused = admin.alter_consumer_group_offsets([wanted])[topic].result(PATIENCE)
    assert {KafkaError.UNKNOWN_MEMBER_ID} == {
        part.error.code() for part in refused.topic_partitions
    }
    assert {(topic, 0): 3, (topic, 1): 0} == of_group(admin, topic)


def test_groups_are_deleted_when_empty(clients: Clients, admin: AdminClient, topic: str) -> None:
    """
    Each for itself; their offsets go with them.
    """
    clients.create(topic)
    busy, idle = f"{topic}-busy", f"{topic}-idle"
    consumer = clients.consumer(busy)
    consumer.subscribe([topic])
    eventually(lambda: len(assigned(consumer)) == 2, consumer)
    clients.consumer(idle).commit(offsets=[TopicPartition(topic, 0, 1)], asynchronous=False)

    futures = admin.delete_consumer_groups([busy, idle])

    futures[idle].result(PATIENCE)
    with fails_with(KafkaError.NON_EMPTY_GROUP):
        futures[busy].result(PATIENCE)
    assert {} == of_group(admin, idle)
    assert idle not in listed(admin)
    consumer.close()
    admin.delete_consumer_groups([busy])[busy].result(PATIENCE)
    assert busy not in listed(admin)
