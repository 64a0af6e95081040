"""
Faults that requests meet, and how real clients react.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer
from kafka import KafkaProducer  # type: ignore[import-untyped]

from barnabas.protocol.errors import ErrorCode
from barnabas.testing import Broker, InvalidFault

pytestmark = pytest.mark.interop


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(topics={"orders": 1, "others": 1}) as broker:
        yield broker


def values(broker: Broker) -> list[bytes | None]:
    return [record.value for record in broker.topic("orders").records()]


class Sent:
    """
    A record of confluent-kafka, delivered or refused.
    """

    def __init__(self, broker: Broker, topic: str = "orders", **options: object) -> None:
        self.error: KafkaError | None = None
        self._producer = Producer(
            {
                "bootstrap.servers": broker.bootstrap_servers,
                "client.id": "c",
                "retry.backoff.ms": 10,
                **{name.replace("_", "."): value for name, value in options.items()},
            }
        )
        self._producer.produce(topic, b"one", on_delivery=self._delivered)
        assert 0 == self._producer.flush(30)

    def _delivered(self, error: KafkaError | None, _message: Message) -> None:
        self.error = error


def test_an_error_that_passes_is_tried_again(broker: Broker) -> None:
    fault = broker.faults.fail("Produce", error="NOT_LEADER_OR_FOLLOWER", times=2)

    sent = Sent(broker)

    assert (None, 2) == (sent.error, fault.count)
    assert [b"one"] == values(broker)


def test_an_error_that_stays_reaches_the_caller(broker: Broker) -> None:
    broker.faults.fail("Produce", error=ErrorCode.TOPIC_AUTHORIZATION_FAILED)

    sent = Sent(broker)

    assert sent.error is not None
    assert KafkaError.TOPIC_AUTHORIZATION_FAILED == sent.error.code()
    assert [] == values(broker)


def test_an_answer_that_is_lost_makes_a_duplicate(broker: Broker) -> None:
    fault = broker.faults.drop("Produce", times=1)

    sent = Sent(broker, enable_idempotence=False)

    assert (None, 1) == (sent.error, fault.count)
    assert [b"one", b"one"] == values(broker)


def test_idempotence_suppresses_the_duplicate(broker: Broker) -> None:
    fault = broker.faults.drop("Produce", times=1)

    sent = Sent(broker, enable_idempotence=True)

    assert (None, 1) == (sent.error, fault.count)
    assert [b"one"] == values(broker)


def test_a_connection_that_is_closed_before_the_work_costs_nothing(broker: Broker) -> None:
    fault = broker.faults.close("Produce", times=1)

    sent = Sent(broker, enable_idempotence=False)

    assert (None, 1) == (sent.error, fault.count)
    assert [b"one"] == values(broker)


def test_an_answer_that_is_late_is_waited_for(broker: Broker) -> None:
    broker.faults.delay("Produce", seconds=0.3)
    began = time.monotonic()

    assert Sent(broker).error is None

    assert time.monotonic() - began >= 0.3


def test_a_client_that_does_not_wait_so_long_gives_up(broker: Broker) -> None:
    broker.faults.delay("Produce", seconds=2.0)

    sent = Sent(broker, enable_idempotence=False, message_timeout_ms=500)

    assert sent.error is not None
    assert KafkaError._MSG_TIMED_OUT == sent.error.code()


def test_faults_choose_the_client_and_the_topic(broker: Broker) -> None:
    of_topic = broker.faults.fail("Produce", error="INVALID_REQUIRED_ACKS", topic="others")
    of_client = broker.faults.fail("Produce", error="INVALID_REQUIRED_ACKS", client_id="other")

    assert Sent(broker).error is None
    assert Sent(broker, topic="others").error is not None
    with (
        KafkaProducer(
            bootstrap_servers=broker.bootstrap_servers, client_id="other", enable_idempotence=False
        ) as producer,
        pytest.raises(Exception, match="InvalidRequiredAcks"),
    ):
        producer.send("orders", b"two").get(timeout=30)

    assert (1, 1) == (of_topic.count, of_client.count)
    assert [b"one"] == values(broker)


def test_faults_can_be_removed(broker: Broker) -> None:
    one = broker.faults.fail("Produce", error="INVALID_REQUIRED_ACKS")
    broker.faults.fail("Produce", error="INVALID_REQUIRED_ACKS")
    assert Sent(broker).error is not None

    one.remove()
    broker.restart()
    assert Sent(broker).error is not None

    broker.faults.clear()
    assert Sent(broker).error is None


def test_a_consumer_survives_the_loss_of_its_coordinator(broker: Broker) -> None:
    broker.topic("orders").append(["one"])
    heartbeats = broker.faults.fail("Heartbeat", error="NOT_COORDINATOR", times=1)
    fetches = broker.faults.close("Fetch", times=1)
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "readers",
            "auto.offset.reset": "earliest",
            "heartbeat.interval.ms": 50,
        }
    )
    consumer.subscribe(["orders"])
    message = None
    while message is None or message.error():
        message = consumer.poll(30)
    assert b"one" == message.value()
    while not heartbeats.count:
        consumer.poll(0.1)
    consumer.close()

    assert 1 == fetches.count
    assert 1 == broker.groups["readers"].committed("orders")


def test_a_fault_of_an_unknown_api_or_error_is_refused(broker: Broker) -> None:
    with pytest.raises(InvalidFault, match="no API Prodcue; did you mean Produce"):
        broker.faults.drop("Prodcue")
    with pytest.raises(InvalidFault, match="did you mean NOT_LEADER_OR_FOLLOWER"):
        broker.faults.fail("Produce", error="NOT_LEADER")


def test_faults_are_ordered_in_another_process_too() -> None:
    with Broker(process=True, topics={"orders": 1}) as broker:
        fault = broker.faults.drop("Produce", times=1)

        assert Sent(broker, enable_idempotence=False).error is None
        assert 1 == fault.count
        assert [b"one", b"one"] == values(broker)
