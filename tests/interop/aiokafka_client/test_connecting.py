"""
How aiokafka finds the broker, asks it, and notices that it is gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from aiokafka.client import AIOKafkaClient  # type: ignore[import-untyped]  # no type hints
from aiokafka.client import ConnectionGroup as Purpose
from aiokafka.errors import KafkaConnectionError  # type: ignore[import-untyped]  # the same
from aiokafka.protocol.fetch import FetchRequest  # type: ignore[import-untyped]  # the same
from aiokafka.protocol.metadata import MetadataRequest  # type: ignore[import-untyped]  # the same

from tests.interop.aiokafka_client.clients import Clients, numbered, values
from tests.interop.conftest import new_broker
from tests.support.broker_process import BrokerProcess, free_port

ENOUGH = 1 << 20


@pytest.fixture
async def client(broker: BrokerProcess) -> AsyncIterator[Any]:
    made = AIOKafkaClient(bootstrap_servers=broker.bootstrap)
    await made.bootstrap()
    yield made
    await made.close()


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    """
    A broker that a test may stop.
    """
    settings = {"num__partitions": "2", "group__initial__rebalance__delay__ms": "0"}
    with new_broker(tmp_path, **settings) as broker:
        yield broker


def long_poll(topic: str, milliseconds: int) -> FetchRequest:
    """
    A fetch of partition 0 for more than there is.
    """
    return FetchRequest(
        max_wait_time=milliseconds,
        min_bytes=ENOUGH,
        max_bytes=ENOUGH,
        isolation_level=0,
        topics=[(topic, [(0, 0, ENOUGH)])],
    )


@pytest.mark.parametrize("given", ["list", "text"])
async def test_one_reachable_bootstrap_address_suffices(broker: BrokerProcess, given: str) -> None:
    addresses = [f"127.0.0.1:{free_port()}", broker.bootstrap]
    client = AIOKafkaClient(bootstrap_servers=addresses if given == "list" else ",".join(addresses))

    await client.bootstrap()

    assert [broker.port] == [node.port for node in client.cluster.brokers()]
    await client.close()


async def test_unreachable_bootstrap_addresses_are_an_error() -> None:
    client = AIOKafkaClient(bootstrap_servers=f"127.0.0.1:{free_port()}")

    with pytest.raises(KafkaConnectionError):
        await client.bootstrap()

    await client.close()


async def test_metadata_request_creates_a_topic(client: Any, topic: str) -> None:
    await client.add_topic(topic)
    await client._wait_on_metadata(topic)

    [node] = client.cluster.brokers()
    assert {0, 1} == client.cluster.partitions_for_topic(topic)
    assert {node.nodeId} == {
        client.cluster._partitions[topic][number].leader for number in range(2)
    }


async def test_metadata_returns_the_requested_topics(client: Any, topic: str) -> None:
    names = {f"{topic}-{number}" for number in range(3)}
    for name in names:
        await client._wait_on_metadata(name)

    await client.set_topics(names)
    assert names <= client.cluster.topics()
    [one, *_] = sorted(names)
    await client.set_topics([one])
    await client.force_metadata_update()
    assert {one} == client.cluster.topics()


async def test_responses_on_one_connection_are_in_request_order(client: Any, topic: str) -> None:
    await client._wait_on_metadata(topic)
    node = client.get_random_node()
    done: list[str] = []

    async def ask(name: str, request: Any) -> None:
        await client.send(node, request)
        done.append(name)

    slow = asyncio.create_task(ask("slow", long_poll(topic, 200)))
    await asyncio.sleep(0)
    await asyncio.gather(slow, *(ask(str(n), MetadataRequest([])) for n in range(5)))

    assert ["slow", "0", "1", "2", "3", "4"] == done


async def test_long_poll_does_not_block_other_connections(client: Any, topic: str) -> None:
    """
    The group's coordinator has a connection of its own for that reason.
    """
    await client._wait_on_metadata(topic)
    node = client.get_random_node()
    slow = asyncio.create_task(client.send(node, long_poll(topic, 1000)))
    await asyncio.sleep(0)

    await client.send(node, MetadataRequest([]), group=Purpose.COORDINATION)

    assert not slow.done()
    answer = await slow
    assert 0 == answer.error_code


async def test_producer_and_member_continue_after_a_broker_restart(
    own_broker: BrokerProcess, topic: str
) -> None:
    """
    The same producer and the same member of a group, with nothing lost and nothing twice.
    """
    async with Clients(own_broker.bootstrap) as clients:
        producer = await clients.producer(enable_idempotence=True, retry_backoff_ms=20)
        consumer = await clients.consumer(topic, group_id=topic, retry_backoff_ms=20)
        for value in numbered(5):
            await producer.send_and_wait(topic, value, partition=0)
        before = await values(consumer, 5)

        await asyncio.to_thread(own_broker.restart)
        for value in numbered(5, first=5):
            await producer.send_and_wait(topic, value, partition=0)
        after = await values(consumer, 5)

    assert numbered(10) == before + after
