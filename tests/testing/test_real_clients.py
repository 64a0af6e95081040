from __future__ import annotations

from collections.abc import Iterator

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer  # type: ignore[import-untyped]
from confluent_kafka import Consumer, Producer
from kafka import KafkaConsumer, KafkaProducer  # type: ignore[import-untyped]

from barnabas.testing import Broker

pytestmark = pytest.mark.interop


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(topics={"orders": 1}) as broker:
        yield broker


def values(broker: Broker) -> list[bytes | None]:
    return [record.value for record in broker.topic("orders").records()]


def test_kafka_python_produces_and_consumes(broker: Broker) -> None:
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        producer.send("orders", b"one").get(timeout=30)
    broker.topic("orders").append(["two"])
    assert [b"one", b"two"] == values(broker)

    consumer = KafkaConsumer(
        "orders",
        bootstrap_servers=broker.bootstrap_servers,
        group_id="readers",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        consumer_timeout_ms=30_000,
    )
    assert [b"one", b"two"] == [next(consumer).value for _ in range(2)]
    consumer.commit()

    group = broker.groups["readers"]
    assert ("Stable", 2, 0) == (group.state, group.committed("orders"), group.lag)
    assert [(("orders", 0),)] == [member.partitions for member in group.members]
    consumer.close()
    broker.wait_until(lambda: broker.groups["readers"].state == "Empty")


def test_confluent_kafka_produces_and_consumes(broker: Broker) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    producer.produce("orders", b"one", key=b"k")
    assert 0 == producer.flush(30)
    assert [b"one"] == values(broker)

    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "readers",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe(["orders"])
    message = consumer.poll(30)
    assert message is not None
    assert (b"k", b"one", None) == (message.key(), message.value(), message.error())
    consumer.close()
    assert 1 == broker.groups["readers"].committed("orders")


async def test_aiokafka_produces_and_consumes_on_the_loop_of_the_test(broker: Broker) -> None:
    async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        await producer.send_and_wait("orders", b"one")
    assert [b"one"] == values(broker)

    async with AIOKafkaConsumer(
        "orders",
        bootstrap_servers=broker.bootstrap_servers,
        group_id="readers",
        auto_offset_reset="earliest",
    ) as consumer:
        assert b"one" == (await consumer.getone()).value
        await consumer.commit()
        assert 0 == broker.groups["readers"].lag


def test_consumer_rejoins_after_a_clock_move_beyond_its_session_timeout(broker: Broker) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "readers",
            "auto.offset.reset": "earliest",
            "heartbeat.interval.ms": 100,
            "session.timeout.ms": 6000,
        }
    )
    consumer.subscribe(["orders"])
    broker.topic("orders").append(["one"])
    first = consumer.poll(30)
    assert first is not None
    assert b"one" == first.value()
    consumer.commit(asynchronous=False)

    broker.clock.advance(days=1)
    assert not broker.groups["readers"].members

    broker.topic("orders").append(["two"])
    polled = (consumer.poll(30) for _ in range(10))  # the lost session is an error, among others
    second = next(message for message in polled if message is not None and not message.error())
    assert b"two" == second.value()
    consumer.close()


def test_transaction_left_open_over_a_clock_move_is_aborted(broker: Broker) -> None:
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "transactional.id": "tx",
            "transaction.timeout.ms": 60_000,
        }
    )
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce("orders", b"half")
    assert 0 == producer.flush(30)

    broker.clock.advance(minutes=2)

    broker.topic("orders").append(["whole"])
    assert [b"whole"] == [r.value for r in broker.topic("orders").records(committed=True)]


def test_clients_reconnect_after_a_restart(broker: Broker) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    producer.produce("orders", b"one")
    assert 0 == producer.flush(30)

    broker.restart()

    producer.produce("orders", b"two")
    assert 0 == producer.flush(30)
    assert [b"one", b"two"] == values(broker)
