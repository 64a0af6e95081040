"""
What only librdkafka's clients can do; `test_scenarios.py` has what all libraries can.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import (
    OFFSET_BEGINNING,
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    ConsumerGroupType,
    ElectionType,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin._acl import AclOperation
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._listoffsets import OffsetSpec
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.aio import AIOConsumer, AIOProducer
from confluent_kafka.cimpl import NewPartitions, NewTopic

from tests.interop.clients.base import (
    PATIENCE,
    nothing_comes,
    numbered,
    read,
    values,
    wait_for_shares,
)
from tests.interop.clients.confluent import ConfluentSession
from tests.support.broker_process import BrokerProcess, wait_for

COOPERATIVE = "cooperative-sticky"
NO_OFFSET = -1001
Listed: Any = OffsetSpec
"""
Its methods lack some type hints.
"""


@pytest.fixture(scope="session")
def broker(quick_broker: BrokerProcess) -> BrokerProcess:
    return quick_broker


@pytest.fixture
def session(broker: BrokerProcess) -> Iterator[ConfluentSession]:
    with ConfluentSession(broker.bootstrap) as made:
        yield made


def test_topics_are_described_with_their_partitions(session: ConfluentSession, topic: str) -> None:
    """
    Allowed operations are listed if asked for.
    """
    session.create(topic, 2)
    wanted = TopicCollection([topic, f"{topic}-missing"])

    futures = session.admin.describe_topics(wanted, include_authorized_operations=True)
    found = futures[topic].result(PATIENCE)

    assert (topic, False) == (found.name, found.is_internal)
    assert [0, 1] == [part.id for part in found.partitions]
    assert {1} == {len(part.replicas) for part in found.partitions}
    assert {1} == {len(part.isr) for part in found.partitions}
    assert {AclOperation.READ, AclOperation.DELETE} <= set(found.authorized_operations)
    with session.refuses(KafkaError.UNKNOWN_TOPIC_OR_PART):
        futures[f"{topic}-missing"].result(PATIENCE)
    plain = session.admin.describe_topics(TopicCollection([topic]))[topic].result(PATIENCE)
    assert plain.authorized_operations is None


def test_cluster_is_described(session: ConfluentSession, broker: BrokerProcess) -> None:
    found = session.admin.describe_cluster(include_authorized_operations=True).result(PATIENCE)
    metadata = session.admin.list_topics(timeout=PATIENCE)

    [node] = found.nodes
    assert ("127.0.0.1", broker.port) == (node.host, node.port)
    assert node.id == found.controller.id == metadata.controller_id
    assert found.cluster_id == metadata.cluster_id
    assert {AclOperation.ALTER, AclOperation.CREATE} <= set(found.authorized_operations)


def test_metadata_of_one_or_all_topics_is_returned(session: ConfluentSession, topic: str) -> None:
    session.create(topic, 3)
    missing = f"{topic}-missing"

    every = session.admin.list_topics(timeout=PATIENCE)
    one = session.admin.list_topics(topic, timeout=PATIENCE)
    # The question of an admin client would create it.
    none = session.consumer(topic).list_topics(missing, timeout=PATIENCE)

    assert [0, 1, 2] == sorted(every.topics[topic].partitions)
    assert [topic] == list(one.topics)
    assert KafkaError.UNKNOWN_TOPIC_OR_PART == none.topics[missing].error.code()


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


def test_partitions_may_be_assigned_manually(session: ConfluentSession, topic: str) -> None:
    [here] = session.admin.list_topics(timeout=PATIENCE).brokers
    placed = NewTopic(topic, 2, replica_assignment=[[here], [here]])
    session.admin.create_topics([placed])[topic].result(PATIENCE)
    more = NewPartitions(topic, 3, replica_assignment=[[here]])
    session.admin.create_partitions([more], validate_only=True)[topic].result(PATIENCE)
    assert 2 == session.partitions(topic)
    session.admin.create_partitions([more])[topic].result(PATIENCE)
    nowhere = NewTopic(f"{topic}-2", 1, replica_assignment=[[here + 1]])

    with session.refuses(KafkaError.INVALID_REPLICA_ASSIGNMENT):
        session.admin.create_topics([nowhere])[f"{topic}-2"].result(PATIENCE)

    assert 3 == session.partitions(topic)


def test_configs_are_changed_incrementally(session: ConfluentSession, topic: str) -> None:
    """
    Options of two topics are set, deleted, appended to and taken from in one request.
    """
    other = f"{topic}-too"
    for name in (topic, other):
        session.create(name, configs={"compression.type": "gzip"})
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
    for future in session.admin.incremental_alter_configs(first).values():
        future.result(PATIENCE)

    assert {
        "cleanup.policy": "delete,compact",
        "retention.ms": "10000",
        "compression.type": "gzip",
    }.items() <= session.configs(topic).items()
    assert {
        "cleanup.policy": "",
        "retention.ms": "604800000",
        "compression.type": "producer",
    }.items() <= session.configs(other).items()
    found = session.admin.describe_configs(first)[first[1]].result(PATIENCE)
    assert [False, True] == [
        found[name].is_default for name in ("cleanup.policy", "compression.type")
    ]
    with session.refuses(KafkaError.INVALID_CONFIG) as refused:
        bad = alter(topic, retention_ms=(Op.SET, "soon"))
        session.admin.incremental_alter_configs([bad])[bad].result(PATIENCE)
    assert "Not a number of type LONG" in refused.value.args[0].str()
    with session.refuses(KafkaError.UNKNOWN_TOPIC_OR_PART):
        missing = alter(f"{topic}-missing", retention_ms=(Op.SET, "1"))
        session.admin.incremental_alter_configs([missing])[missing].result(PATIENCE)


@pytest.mark.parametrize("level", list(IsolationLevel))
def test_offsets_are_listed_by_specification(
    session: ConfluentSession, topic: str, level: IsolationLevel
) -> None:
    """
    Specifications are the first, the last, the greatest time, and a time.
    """
    session.create(topic)
    for when in (100, 400, 200):
        session.writer().send(topic, [b""], timestamp_ms=when)
    part = TopicPartition(topic, 0)

    def find(spec: OffsetSpec) -> tuple[int, int]:
        futures = session.admin.list_offsets({part: spec}, isolation_level=level)
        found = futures[part].result(PATIENCE)
        return found.offset, found.timestamp

    assert (0, -1) == find(Listed.earliest())
    assert (3, -1) == find(Listed.latest())
    assert (1, 400) == find(Listed.max_timestamp())
    assert (1, 400) == find(Listed.for_timestamp(150))
    assert (-1, -1) == find(Listed.for_timestamp(401))


def test_records_are_deleted_in_many_partitions_at_once(
    session: ConfluentSession, topic: str
) -> None:
    """
    Each partition has its own offset, and its own error beyond the end.
    """
    session.create(topic, 4)
    for partition in range(4):
        session.writer().send(topic, numbered(3), partition=partition)
    parts = [TopicPartition(topic, number, offset) for number, offset in enumerate((0, 2, -1, 4))]

    futures = session.admin.delete_records(parts)

    assert [0, 2, 3] == [futures[part].result(PATIENCE).low_watermark for part in parts[:3]]
    with session.refuses(KafkaError.OFFSET_OUT_OF_RANGE):
        futures[parts[3]].result(PATIENCE)
    assert [b"2"] == values(session.reader(topic, 1), 1)
    with session.refuses(KafkaError._NOENT):
        missing = TopicPartition(f"{topic}-missing", 0, 1)
        session.admin.delete_records([missing])[missing].result(PATIENCE)


def test_election_of_the_current_leader_is_not_needed(
    session: ConfluentSession, topic: str
) -> None:
    """
    Each partition has an error of its own.
    """
    session.create(topic)
    there, missing = TopicPartition(topic, 0), TopicPartition(topic, 9)

    found = session.admin.elect_leaders(ElectionType.PREFERRED, [there, missing]).result(PATIENCE)

    assert [KafkaError.ELECTION_NOT_NEEDED, KafkaError.UNKNOWN_TOPIC_OR_PART] == [
        found[part].code() for part in (there, missing)
    ]


def listed(session: ConfluentSession, **chosen: object) -> dict[str, ConsumerGroupState]:
    found = session.admin.list_consumer_groups(**chosen).result(PATIENCE)
    assert not found.errors
    return {group.group_id: group.state for group in found.valid}


def offsets(session: ConfluentSession, group: str, *partitions: int) -> dict[int, int]:
    """
    The offsets that the group has committed for some partitions of the topic of its name.
    """
    parts = [TopicPartition(group, each) for each in partitions]
    wanted = ConsumerGroupTopicPartitions(group, parts)
    found = session.admin.list_consumer_group_offsets([wanted])[group].result(PATIENCE)
    return {part.partition: part.offset for part in found.topic_partitions}


def test_groups_are_listed_by_state_and_type(session: ConfluentSession, topic: str) -> None:
    session.create(topic, 2)
    busy, idle = f"{topic}-busy", f"{topic}-idle"
    wait_for_shares([session.reader(topic, group_id=busy)], 2)
    session.reader(topic, 0, group_id=idle).commit({0: 1})
    stable, empty = ConsumerGroupState.STABLE, ConsumerGroupState.EMPTY

    assert {busy: stable, idle: empty}.items() <= listed(session).items()
    assert busy in listed(session, states={stable})
    assert idle not in listed(session, states={stable})
    assert idle in listed(session, states={stable, empty})
    assert {busy, idle} <= listed(session, types={ConsumerGroupType.CLASSIC}).keys()
    assert busy not in listed(session, types={ConsumerGroupType.CONSUMER})


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


def test_unknown_group_is_described_as_dead(session: ConfluentSession, topic: str) -> None:
    group = session.admin.describe_consumer_groups([topic])[topic].result(PATIENCE)

    assert (ConsumerGroupState.DEAD, []) == (group.state, group.members)
    with session.refuses(KafkaError.GROUP_ID_NOT_FOUND):
        session.admin.delete_consumer_groups([topic])[topic].result(PATIENCE)


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


def test_incremental_assignment_grows_and_shrinks(session: ConfluentSession, topic: str) -> None:
    """
    No partition is assigned twice; one that was given back is read no further.
    """
    one, two = topic, f"{topic}-too"
    for name in (one, two):
        session.create(name)
        session.writer().send(name, [b"first of " + name.encode()])
    reader = session.reader(topic, group_id=topic, auto_offset_reset="error")
    consumer = reader.consumer
    consumer.unsubscribe()

    consumer.incremental_assign([TopicPartition(one, 0, OFFSET_BEGINNING)])
    assert [b"first of " + one.encode()] == values(reader, 1)
    consumer.commit(asynchronous=False)
    with session.refuses(KafkaError._CONFLICT):
        consumer.incremental_assign([TopicPartition(one, 0)])
    consumer.incremental_assign([TopicPartition(two, 0, OFFSET_BEGINNING)])
    assert [b"first of " + two.encode()] == values(reader, 1)
    consumer.incremental_unassign([TopicPartition(one, 0)])
    session.writer().send(one, [b"second"])
    session.writer().send(two, [b"the only one"])
    assert [b"the only one"] == values(reader, 1)
    consumer.incremental_assign([TopicPartition(one, 0)])
    assert [b"second"] == values(reader, 1)
    consumer.incremental_unassign([TopicPartition(one, 0)])
    with session.refuses(KafkaError._INVALID_ARG):
        consumer.incremental_unassign([TopicPartition(one, 0)])


def test_watermark_offsets_are_requested_or_cached(session: ConfluentSession, topic: str) -> None:
    session.create(topic, 2)
    session.writer().send(topic, numbered(3))
    reader = session.reader(topic, 0)

    assert (0, 3) == reader.bounds(0)
    assert numbered(3) == values(reader, 3)
    assert 3 == reader.consumer.get_watermark_offsets(reader.part(0), cached=True)[1]
    assert (0, 0) == reader.bounds(1)
    with session.refuses(KafkaError._UNKNOWN_PARTITION):
        reader.bounds(2)


def test_end_of_each_partition_is_reported(session: ConfluentSession, topic: str) -> None:
    session.create(topic, 2)
    session.writer().send(topic, numbered(2))
    consumer = session.reader(topic, 0, 1, enable_partition_eof=True).consumer

    def until_ends(count: int) -> set[tuple[int | None, int | None]]:
        ends: set[tuple[int | None, int | None]] = set()
        while len(ends) < count:
            message = consumer.poll(PATIENCE)
            assert message is not None
            error = message.error()
            if error is not None:
                assert KafkaError._PARTITION_EOF == error.code()
                ends.add((message.partition(), message.offset()))
        return ends

    assert {(0, 2), (1, 0)} == until_ends(2)
    session.writer().send(topic, numbered(1), partition=1)
    assert {(1, 1)} == until_ends(1)


@pytest.mark.parametrize(("clock", "kind"), [("CreateTime", 1), ("LogAppendTime", 2)])
def test_a_message_has_a_timestamp_type_and_a_leader_epoch(
    session: ConfluentSession, topic: str, clock: str, kind: int
) -> None:
    session.create(topic, configs={"message.timestamp.type": clock})
    session.writer().send(topic, [b""], timestamp_ms=123_456_789_000)

    message = session.reader(topic, 0).consumer.poll(PATIENCE)

    assert message is not None
    assert kind == message.timestamp()[0]
    assert (clock == "CreateTime") == (message.timestamp()[1] == 123_456_789_000)
    assert 0 == message.leader_epoch()


def test_unknown_topic_is_reported_and_not_created(session: ConfluentSession, topic: str) -> None:
    reader = session.reader(topic, group_id=topic)

    with session.refuses(KafkaError.UNKNOWN_TOPIC_OR_PART):
        read(reader, 1)
    assert topic not in session.topics()


def test_statistics_show_the_traffic(session: ConfluentSession, topic: str) -> None:
    told: list[dict[str, Any]] = []
    session.create(topic)
    session.writer().send(topic, numbered(3))
    reader = session.reader(
        topic,
        group_id=topic,
        stats_cb=lambda text: told.append(json.loads(text)),
        statistics_interval_ms=50,
    )
    assert numbered(3) == values(reader, 3)
    already = len(told)
    wait_for(lambda: not reader.poll() and len(told) > already + 1, "statistics", PATIENCE)

    latest = told[-1]
    assert 3 == latest["topics"][topic]["partitions"]["0"]["app_offset"]
    assert 3 == latest["topics"][topic]["partitions"]["0"]["hi_offset"]
    assert ("up", 1) == (latest["cgrp"]["state"], latest["cgrp"]["assignment_size"])
    assert {"UP"} <= {node["state"] for node in latest["brokers"].values()}


def test_stored_offset_is_committed(session: ConfluentSession, topic: str) -> None:
    """
    A message that is an error cannot be stored.
    """
    session.create(topic)
    session.writer().send(topic, numbered(5))
    options = {"enable_auto_offset_store": False, "enable_partition_eof": True}
    reader = session.reader(topic, 0, group_id=topic, **options)
    consumer = reader.consumer

    messages = [message for _ in range(6) if (message := consumer.poll(PATIENCE))]
    consumer.store_offsets(messages[2])
    assert [3] == [part.offset for part in consumer.commit(asynchronous=False) or []]
    for method in (consumer.store_offsets, consumer.commit):
        with pytest.raises(KafkaException):
            method(message=messages[5])
    assert 3 == reader.committed(0)


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


def test_member_that_polls_too_rarely_is_told(session: ConfluentSession, topic: str) -> None:
    session.create(topic)
    options = {"session_timeout_ms": 2000, "max_poll_interval_ms": 2000}
    reader = session.reader(topic, group_id=topic, **options)
    wait_for_shares([reader], 1)
    time.sleep(2.5)

    with session.refuses(KafkaError._MAX_POLL_EXCEEDED):
        read(reader, 1)
    wait_for_shares([reader], 1)

    assert ["+0", "!0", "+0"] == reader.changes


def test_member_id_exists_while_the_member_is_joined(session: ConfluentSession, topic: str) -> None:
    session.create(topic)
    reader = session.reader(topic, group_id=topic)

    assert not reader.consumer.memberid()
    wait_for_shares([reader], 1)
    assert reader.consumer.memberid()


def test_commit_keeps_its_metadata(session: ConfluentSession, topic: str) -> None:
    """
    The metadata may be of any alphabet or empty, and has a leader epoch.
    """
    session.create(topic, 2)
    consumer = session.consumer(topic)

    for metadata in ("none of it", "größer ☃", ""):
        part = TopicPartition(topic, 1, 7, metadata, 0)
        consumer.commit(offsets=[part], asynchronous=False)
        [found] = consumer.committed([TopicPartition(topic, 1)], PATIENCE)
        assert (7, metadata) == (found.offset, found.metadata)
        assert 0 == found.leader_epoch


def test_asynchronous_commit_is_reported(session: ConfluentSession, topic: str) -> None:
    told: list[tuple[KafkaError | None, list[int]]] = []
    session.create(topic)
    session.writer().send(topic, numbered(3))
    reader = session.reader(
        topic,
        group_id=topic,
        on_commit=lambda error, parts: told.append((error, [part.offset for part in parts])),
    )
    assert numbered(3) == values(reader, 3)

    reader.consumer.commit(asynchronous=True)
    wait_for(lambda: not reader.poll() and bool(told), "the report", PATIENCE)

    assert [(None, [3])] == told
    assert 3 == reader.committed(0)


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
