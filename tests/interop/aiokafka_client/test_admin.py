"""
Administration with aiokafka, and what its answers hold.
"""

from __future__ import annotations

from aiokafka.admin import (  # type: ignore[import-untyped]  # the same
    NewTopic,
)
from aiokafka.admin.config_resource import (  # type: ignore[import-untyped]  # the same
    ConfigResource,
    ConfigResourceType,
)

from tests.interop.aiokafka_client.clients import Clients, partitions_of
from tests.support.broker_process import BrokerProcess

NONE = 0
TOPIC, BROKER = ConfigResourceType.TOPIC, ConfigResourceType.BROKER


async def test_topic_configs_are_described_and_replaced(clients: Clients, topic: str) -> None:
    """
    Options not named in the request are reset.
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


async def test_broker_configs_are_described(clients: Clients, broker: BrokerProcess) -> None:
    admin = await clients.admin()
    cluster = await admin.describe_cluster()
    [node] = cluster["brokers"]

    [answer] = await admin.describe_configs([ConfigResource(BROKER, node["node_id"])])

    [(code, _, kind, name, entries, *_)] = answer.resources
    assert (NONE, BROKER, str(node["node_id"])) == (code, kind, name)
    assert "2" == {name: value for name, value, *_ in entries}["num.partitions"]
    assert ("127.0.0.1", broker.port) == (node["host"], node["port"])
    assert node["node_id"] == cluster["controller_id"]


async def test_groups_are_listed_and_described_with_their_offsets(
    clients: Clients, topic: str
) -> None:
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
