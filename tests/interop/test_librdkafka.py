"""
What only librdkafka's clients can do; `test_scenarios.py` has what all libraries can.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import (
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    ConsumerGroupType,
    KafkaError,
    TopicPartition,
)
from confluent_kafka.admin._acl import AclOperation
from confluent_kafka.aio import AIOConsumer, AIOProducer

from tests.interop.clients.base import (
    PATIENCE,
    nothing_comes,
    numbered,
    read,
    values,
    wait_for_shares,
)
from tests.interop.clients.confluent import ConfluentSession
from tests.support.broker_process import BrokerProcess

COOPERATIVE = "cooperative-sticky"
NO_OFFSET = -1001


@pytest.fixture(scope="session")
def broker(quick_broker: BrokerProcess) -> BrokerProcess:
    return quick_broker


@pytest.fixture
def session(broker: BrokerProcess) -> Iterator[ConfluentSession]:
    with ConfluentSession(broker.bootstrap) as made:
        yield made


def test_topics_and_groups_are_deleted_independently(session: ConfluentSession, topic: str) -> None:
    """
    Each missing topic and each group with members is refused for itself.
    """
    session.create(topic, 2)
    busy, idle = f"{topic}-busy", f"{topic}-idle"
    reader = session.reader(topic, group_id=busy)
    wait_for_shares([reader], 2)
    session.reader(topic, 0, group_id=idle).commit({0: 1})

    groups = session.admin.delete_consumer_groups([busy, idle])
    groups[idle].result(PATIENCE)
    with session.refuses(KafkaError.NON_EMPTY_GROUP):
        groups[busy].result(PATIENCE)
    assert {} == session.offsets(idle)
    assert idle not in session.groups()
    reader.close()
    session.admin.delete_consumer_groups([busy])[busy].result(PATIENCE)
    assert busy not in session.groups()

    topics = session.admin.delete_topics([topic, f"{topic}-missing"])
    topics[topic].result(PATIENCE)
    with session.refuses(KafkaError.UNKNOWN_TOPIC_OR_PART):
        topics[f"{topic}-missing"].result(PATIENCE)
    assert topic not in session.topics()


def offsets(session: ConfluentSession, group: str, *partitions: int) -> dict[int, int]:
    """
    The offsets that the group has committed for some partitions of the topic of its name.
    """
    parts = [TopicPartition(group, each) for each in partitions]
    wanted = ConsumerGroupTopicPartitions(group, parts)
    found = session.admin.list_consumer_group_offsets([wanted])[group].result(PATIENCE)
    return {part.partition: part.offset for part in found.topic_partitions}


def test_group_is_described_with_its_members(session: ConfluentSession, topic: str) -> None:
    """
    The description names its members, their partitions and the allowed operations.
    """
    session.create(topic, 2)
    reader = session.reader(
        topic,
        group_id=topic,
        client_id="the member",
        group_instance_id="the instance",
        partition_assignment_strategy="roundrobin",
    )
    wait_for_shares([reader], 2)

    futures = session.admin.describe_consumer_groups([topic], include_authorized_operations=True)
    group = futures[topic].result(PATIENCE)
    [member] = group.members

    assert (topic, "roundrobin", False) == (
        group.group_id,
        group.partition_assignor,
        group.is_simple_consumer_group,
    )
    assert (ConsumerGroupState.STABLE, ConsumerGroupType.CLASSIC) == (group.state, group.type)
    assert ("the member", "the instance") == (member.client_id, member.group_instance_id)
    assert reader.consumer.memberid() == member.member_id
    assert [0, 1] == sorted(part.partition for part in member.assignment.topic_partitions)
    assert {AclOperation.READ, AclOperation.DELETE} <= set(group.authorized_operations)


def test_group_offsets_can_be_changed_only_without_members(
    session: ConfluentSession, topic: str
) -> None:
    """
    A member begins with what was set; while it is there, nothing can be set.
    """
    session.create(topic, 2)
    session.writer().send(topic, numbered(5))
    wanted = ConsumerGroupTopicPartitions(
        topic, [TopicPartition(topic, 0, 3), TopicPartition(topic, 1, 0)]
    )

    session.admin.alter_consumer_group_offsets([wanted])[topic].result(PATIENCE)
    assert {0: 3, 1: 0} == session.offsets(topic)
    assert {1: 0, 7: NO_OFFSET} == offsets(session, topic, 1, 7)

    [record] = read(session.reader(topic, group_id=topic), 1)
    assert 3 == record.offset
    refused = session.admin.alter_consumer_group_offsets([wanted])[topic].result(PATIENCE)
    assert {KafkaError.UNKNOWN_MEMBER_ID} == {
        part.error.code() for part in refused.topic_partitions
    }
    assert {0: 3, 1: 0} == session.offsets(topic)


@pytest.mark.parametrize("strategy", ["range", "roundrobin", COOPERATIVE])
def test_partitions_are_shared_by_each_strategy(
    session: ConfluentSession, topic: str, strategy: str
) -> None:
    session.create(topic, 4)
    options = {"group_id": topic, "partition_assignment_strategy": strategy}
    one, two = (session.reader(topic, **options) for _ in range(2))
    wait_for_shares([one, two], 4)

    one.close()

    wait_for_shares([two], 4)


def test_cooperative_member_revokes_only_what_another_gets(
    session: ConfluentSession, topic: str
) -> None:
    """
    Both read on meanwhile (KIP-429).
    """
    session.create(topic, 2)
    options = {"group_id": topic, "partition_assignment_strategy": COOPERATIVE}
    one = session.reader(topic, **options)
    wait_for_shares([one], 2)

    two = session.reader(topic, **options)
    wait_for_shares([one, two], 2)

    [moved] = two.assigned()
    assert ["+0,1", f"-{moved}"] == one.changes
    assert [f"+{moved}"] == two.changes


def test_cooperative_member_adds_another_topic_without_revocation(
    session: ConfluentSession, topic: str
) -> None:
    names = [topic, f"{topic}-too"]
    for name in names:
        session.create(name)
        session.writer().send(name, [name.encode()])
    reader = session.reader(topic, group_id=topic, partition_assignment_strategy=COOPERATIVE)
    assert [topic.encode()] == values(reader, 1)

    reader.subscribe(names)

    assert [f"{topic}-too".encode()] == values(reader, 1)
    assert ["+0", "+0"] == reader.changes


def test_second_member_with_an_instance_id_fences_the_first(
    session: ConfluentSession, topic: str
) -> None:
    session.create(topic)
    older = session.reader(topic, group_id=topic, group_instance_id="one")
    wait_for_shares([older], 1)
    wait_for_shares([session.reader(topic, group_id=topic, group_instance_id="one")], 1)

    with session.refuses(KafkaError._FATAL):
        read(older, 1)


async def test_asyncio_producer_and_consumer_work(
    broker: BrokerProcess, session: ConfluentSession, topic: str
) -> None:
    session.create(topic)
    conf = {"bootstrap.servers": broker.bootstrap}
    producer = AIOProducer(conf)
    sent = [await producer.produce(topic, value=value) for value in numbered(5)]
    await producer.flush()
    places = [(await each).offset() for each in sent]
    await producer.close()
    consumer = AIOConsumer(conf | {"group.id": topic, "auto.offset.reset": "earliest"})
    await consumer.subscribe([topic])

    seen = [(await consumer.poll(timeout=PATIENCE)).value() for _ in range(5)]
    await consumer.close()

    assert [0, 1, 2, 3, 4] == places
    assert numbered(5) == seen


def test_failed_message_makes_the_transaction_abortable(
    session: ConfluentSession, topic: str
) -> None:
    """
    It cannot be committed; that of the next producer can.
    """
    session.create(topic, configs={"max.message.bytes": "1000"})
    writer = session.writer(transactional_id=topic)
    writer.begin()
    writer.send(topic, [b"small"])
    writer.producer.produce(topic, b"x" * 2000)
    with session.refuses() as failed:
        writer.commit()
    assert failed.value.args[0].txn_requires_abort()
    writer.abort()

    again = session.writer(transactional_id=topic)
    again.begin()
    again.send(topic, [b"kept"])
    again.commit()

    reader = session.reader(topic, 0, isolation_level="read_committed")
    assert [b"kept"] == values(reader, 1)
    assert nothing_comes(reader)
