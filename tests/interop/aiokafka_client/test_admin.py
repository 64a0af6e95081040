"""
Administration with aiokafka, and what its answers hold.
"""

from __future__ import annotations

from typing import Any

import pytest
from aiokafka import TopicPartition  # type: ignore[import-untyped]  # no type hints
from aiokafka.admin import (  # type: ignore[import-untyped]  # the same
    NewPartitions,
    NewTopic,
    RecordsToDelete,
)
from aiokafka.admin.config_resource import (  # type: ignore[import-untyped]  # the same
    ConfigResource,
    ConfigResourceType,
)
from aiokafka.errors import InvalidPartitionsError  # type: ignore[import-untyped]  # the same

from tests.interop.aiokafka_client.clients import Clients, numbered, partitions_of, values
from tests.support.broker_process import BrokerProcess

NONE, INVALID_REPLICATION_FACTOR, TOPIC_EXISTS, UNKNOWN_TOPIC, INVALID_CONFIG = 0, 38, 36, 3, 40
INVALID_PARTITIONS = 37
TOPIC, BROKER = ConfigResourceType.TOPIC, ConfigResourceType.BROKER


def codes(answer: Any) -> list[int]:
    """
    The error code for each topic of an answer.
    """
    errors: Any = getattr(answer, "topic_errors", None) or answer.topic_error_codes
    return [code for _, code, *_ in errors]


async def test_topics_are_created_listed_and_deleted(clients: Clients, topic: str) -> None:
    """
    With as many partitions as wanted, once, and not if it is only a question.
    """
    admin = await clients.admin()

    assert [NONE] == codes(await admin.create_topics([NewTopic(topic, 3, 1)], validate_only=True))
    assert topic not in await admin.list_topics()
    assert [NONE] == codes(await admin.create_topics([NewTopic(topic, 3, 1)]))
    assert [TOPIC_EXISTS] == codes(await admin.create_topics([NewTopic(topic, 3, 1)]))
    assert topic in await admin.list_topics()
    [described] = await admin.describe_topics([topic])
    assert [0, 1, 2] == sorted(each["partition"] for each in described["partitions"])
    assert [NONE] == codes(await admin.delete_topics([topic]))
    assert topic not in await admin.list_topics()
    assert [UNKNOWN_TOPIC] == codes(await admin.delete_topics([topic]))


async def test_a_topic_that_cannot_be_is_refused(clients: Clients, topic: str) -> None:
    admin = await clients.admin()
    impossible = {
        NewTopic(f"{topic}-1", 1, 2): INVALID_REPLICATION_FACTOR,
        NewTopic(f"{topic}-2", 0, 1): INVALID_PARTITIONS,
        NewTopic(f"{topic}-3", 1, 1, topic_configs={"retention.ms": "soon"}): INVALID_CONFIG,
    }

    for new, code in impossible.items():
        assert [code] == codes(await admin.create_topics([new])), new.name


async def test_the_configs_of_a_topic_are_described_and_replaced(
    clients: Clients, topic: str
) -> None:
    """
    What is not named in an alteration goes back to its default.
    """
    admin = await clients.admin()
    configs = {"retention.ms": "77", "cleanup.policy": "compact"}
    await admin.create_topics([NewTopic(topic, 1, 1, topic_configs=configs)])

    async def described(*names: str) -> dict[str, str]:
        resource = ConfigResource(TOPIC, topic, dict.fromkeys(names))
        [answer] = await admin.describe_configs([resource])
        [(code, _, kind, name, entries, *_)] = answer.resources
        assert (NONE, TOPIC, topic) == (code, kind, name)
        return {name: value for name, value, *_ in entries}

    assert configs == await described(*configs)
    assert configs.items() <= (await described()).items()
    await admin.alter_configs([ConfigResource(TOPIC, topic, {"cleanup.policy": "delete"})])
    assert {"retention.ms": "604800000", "cleanup.policy": "delete"} == await described(*configs)


async def test_the_configs_of_the_broker_are_described(
    clients: Clients, broker: BrokerProcess
) -> None:
    admin = await clients.admin()
    cluster = await admin.describe_cluster()
    [node] = cluster["brokers"]

    [answer] = await admin.describe_configs([ConfigResource(BROKER, node["node_id"])])

    [(code, _, kind, name, entries, *_)] = answer.resources
    assert (NONE, BROKER, str(node["node_id"])) == (code, kind, name)
    assert "2" == {name: value for name, value, *_ in entries}["num.partitions"]
    assert ("127.0.0.1", broker.port) == (node["host"], node["port"])
    assert node["node_id"] == cluster["controller_id"]


async def test_partitions_are_added_and_never_taken_away(clients: Clients, topic: str) -> None:
    admin = await clients.admin()
    await admin.create_topics([NewTopic(topic, 1, 1)])

    answer = await admin.create_partitions({topic: NewPartitions(3)})
    assert [NONE] == codes(answer)
    [described] = await admin.describe_topics([topic])
    assert 3 == len(described["partitions"])
    with pytest.raises(InvalidPartitionsError):
        await admin.create_partitions({topic: NewPartitions(2)})


async def test_groups_are_listed_and_described_with_their_offsets(
    clients: Clients, topic: str
) -> None:
    """
    All offsets that they committed, or those that are asked for.
    """
    p0, p1 = partitions_of(topic, 0, 1)
    consumer = await clients.consumer(topic, group_id=topic, client_id="the member")
    await consumer.commit({p0: 7, p1: (8, "why")})
    admin = await clients.admin()

    assert (topic, "consumer") in {
        (name, kind) for name, kind, *_ in await admin.list_consumer_groups()
    }
    [answer] = await admin.describe_consumer_groups([topic])
    [(code, name, state, kind, protocol, members, *_)] = answer.groups
    assert (NONE, topic, "Stable", "consumer", "roundrobin") == (code, name, state, kind, protocol)
    assert ["the member"] == [client for _, client, *_ in members]
    every = await admin.list_consumer_group_offsets(topic)
    assert {p0: (7, ""), p1: (8, "why")} == {
        part: (found.offset, found.metadata) for part, found in every.items()
    }
    some = await admin.list_consumer_group_offsets(topic, partitions=[p1])
    assert {p1: 8} == {part: found.offset for part, found in some.items()}


async def test_records_are_deleted_up_to_an_offset(clients: Clients, topic: str) -> None:
    p0 = TopicPartition(topic, 0)
    await clients.send(topic, 0, numbered(5))
    admin = await clients.admin()

    assert {p0: 3} == await admin.delete_records({p0: RecordsToDelete(before_offset=3)})

    consumer = await clients.consumer()
    consumer.assign([p0])
    assert {p0: 3} == await consumer.beginning_offsets([p0])
    assert numbered(2, first=3) == await values(consumer, 2)
