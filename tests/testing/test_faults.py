from __future__ import annotations

import errno
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, ThrottleEvent
from kafka import KafkaConsumer, KafkaProducer  # type: ignore[import-untyped]
from kafka.errors import CorruptRecordError  # type: ignore[import-untyped]

from barnabas.protocol.errors import ErrorCode
from barnabas.testing import Broker, BrokerError, InvalidFault
from barnabas.testing.disks.crashable import CrashableFiles
from barnabas.testing.disks.failing import FailingFiles

pytestmark = pytest.mark.interop


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(topics={"orders": 1, "others": 1}) as broker:
        yield broker


def values(broker: Broker) -> list[bytes | None]:
    return [record.value for record in broker.topic("orders").records()]


def _dotted(name: str) -> str:
    return name if name.endswith("_cb") else name.replace("_", ".")


class Sent:
    def __init__(self, broker: Broker, topic: str = "orders", **options: object) -> None:
        self.error: KafkaError | None = None
        self._producer = Producer(
            {
                "bootstrap.servers": broker.bootstrap_servers,
                "client.id": "c",
                "retry.backoff.ms": 10,
                "reconnect.backoff.max.ms": 100,
                **{_dotted(name): value for name, value in options.items()},
            }
        )
        self._producer.produce(topic, b"one", on_delivery=self._delivered)
        assert 0 == self._producer.flush(30)

    def _delivered(self, error: KafkaError | None, _message: Message) -> None:
        self.error = error


def test_fatal_error_is_raised_to_the_caller(broker: Broker) -> None:
    broker.faults.fail("Produce", error=ErrorCode.TOPIC_AUTHORIZATION_FAILED)

    sent = Sent(broker)

    assert sent.error is not None
    assert KafkaError.TOPIC_AUTHORIZATION_FAILED == sent.error.code()
    assert [] == values(broker)


@pytest.mark.parametrize(
    ("fault", "is_idempotent", "times", "records"),
    [
        pytest.param("fail", True, 2, 1, id="error"),
        pytest.param("drop", False, 1, 2, id="lost response leads to a duplicate"),
        pytest.param("drop", True, 1, 1, id="idempotent producer prevents the duplicate"),
        pytest.param("close", False, 1, 1, id="closed before the request is handled"),
    ],
)
def test_failed_request_is_retried(
    broker: Broker, fault: str, times: int, records: int, *, is_idempotent: bool
) -> None:
    options = {"error": "NOT_LEADER_OR_FOLLOWER"} if fault == "fail" else {}
    begun = getattr(broker.faults, fault)("Produce", times=times, **options)

    sent = Sent(broker, enable_idempotence=is_idempotent)

    assert (None, times) == (sent.error, begun.count)
    assert [b"one"] * records == values(broker)


def test_late_response_is_waited_for(broker: Broker) -> None:
    broker.faults.delay("Produce", seconds=0.3)
    began = time.monotonic()

    assert Sent(broker).error is None

    assert time.monotonic() - began >= 0.3


def test_client_gives_up_after_its_timeout(broker: Broker) -> None:
    broker.faults.delay("Produce", seconds=2.0)

    sent = Sent(broker, enable_idempotence=False, message_timeout_ms=500)

    assert sent.error is not None
    assert KafkaError._MSG_TIMED_OUT == sent.error.code()


def test_hanging_request_is_retried_after_the_request_timeout(
    broker: Broker,
) -> None:
    fault = broker.faults.hang("Produce", times=1)
    began = time.monotonic()

    sent = Sent(broker, socket_timeout_ms=1000)

    assert (None, 1) == (sent.error, fault.count)
    assert time.monotonic() - began >= 1
    assert [b"one"] == values(broker)


@pytest.mark.parametrize("end", ["remove", "clear", "restart"])
def test_hanging_connection_ends_with_the_fault_or_the_broker(broker: Broker, end: str) -> None:
    fault = broker.faults.hang("Produce", times=1)
    with ThreadPoolExecutor() as pool:
        sending = pool.submit(Sent, broker)  # waits a minute for an answer
        broker.wait_until(lambda: fault.count)

        {"remove": fault.remove, "clear": broker.faults.clear, "restart": broker.restart}[end]()

        assert sending.result(30).error is None
    assert [b"one"] == values(broker)
    assert "that are not done" not in broker.log


def test_throttled_client_is_told_its_throttle_time(broker: Broker) -> None:
    fault = broker.faults.throttle("Produce", seconds=0.25, times=1)
    events: list[ThrottleEvent] = []

    sent = Sent(broker, throttle_cb=events.append)

    assert (None, 1) == (sent.error, fault.count)
    assert [0.25] == [event.throttle_time for event in events]
    assert [b"one"] == values(broker)


def test_response_of_a_long_poll_is_throttled_too(broker: Broker) -> None:
    fault = broker.faults.throttle("Fetch", seconds=0.05)
    broker.topic("orders").append(["one"])
    consumer = KafkaConsumer(
        "orders",
        bootstrap_servers=broker.bootstrap_servers,
        auto_offset_reset="earliest",
        fetch_max_wait_ms=100,
        consumer_timeout_ms=1000,
    )

    assert [b"one"] == [record.value for record in consumer]

    assert fault.count > 1
    consumer.close()


def test_fault_is_limited_to_the_client_and_the_topic(broker: Broker) -> None:
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


def test_fault_can_be_removed(broker: Broker) -> None:
    one = broker.faults.fail("Produce", error="INVALID_REQUIRED_ACKS")
    broker.faults.fail("Produce", error="INVALID_REQUIRED_ACKS")
    assert Sent(broker).error is not None

    one.remove()
    broker.restart()
    assert Sent(broker).error is not None

    broker.faults.clear()
    assert Sent(broker).error is None


def test_consumer_survives_the_loss_of_its_coordinator(broker: Broker) -> None:
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


def test_fault_with_an_unknown_api_or_error_is_refused(broker: Broker) -> None:
    with pytest.raises(InvalidFault, match="no API Prodcue; did you mean Produce"):
        broker.faults.drop("Prodcue")
    with pytest.raises(InvalidFault, match="did you mean NOT_LEADER_OR_FOLLOWER"):
        broker.faults.fail("Produce", error="NOT_LEADER")
    with pytest.raises(InvalidFault, match="the answer of WriteTxnMarkers has no throttle time"):
        broker.faults.throttle("WriteTxnMarkers", seconds=1)


def test_faults_work_in_a_child_process() -> None:
    with Broker(process=True, topics={"orders": 1}) as broker:
        fault = broker.faults.drop("Produce", times=1)

        assert Sent(broker, enable_idempotence=False).error is None
        assert 1 == fault.count
        assert [b"one", b"one"] == values(broker)


# Disks


def test_producer_waits_for_a_slow_disk() -> None:
    disk = FailingFiles()
    with Broker(disk=disk, topics={"orders": 1}, config={"log.flush.interval.messages": 1}) as slow:
        Sent(slow)
        disk.delay(0.3)
        began = time.monotonic()

        assert Sent(slow).error is None
        assert time.monotonic() - began >= 0.3

        disk.heal()
        assert [b"one", b"one"] == values(slow)


def test_producer_sees_the_error_of_a_full_disk() -> None:
    disk = FailingFiles()
    with Broker(disk=disk, topics={"orders": 1}) as full:
        disk.fail(errno=errno.ENOSPC, only={"write"}, forever=True)

        sent = Sent(full, message_timeout_ms=2000, enable_idempotence=False)

        assert sent.error is not None
        assert "No space left on device" in full.log


def test_consumer_detects_a_flipped_bit() -> None:
    disk = FailingFiles()
    with Broker(disk=disk, topics={"orders": 1}) as broker:
        broker.topic("orders").append(["one" * 1000])
        rot = disk.rot("orders-0/*.log", seed=3)
        assert rot.position > 61, "in the records, not in the header of the batch"
        consumer = KafkaConsumer(
            "orders",
            bootstrap_servers=broker.bootstrap_servers,
            auto_offset_reset="earliest",
            consumer_timeout_ms=10_000,
        )

        with pytest.raises(CorruptRecordError):
            next(consumer)

        consumer.close(autocommit=False)


# Chaos


def idempotent_producer(broker: Broker) -> Producer:
    return Producer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "enable.idempotence": True,
            "retry.backoff.ms": 10,
            "linger.ms": 0,
            "reconnect.backoff.max.ms": 100,
        }
    )


@pytest.mark.parametrize("seed", range(3))
def test_chaos_neither_loses_nor_duplicates_records_of_an_idempotent_producer(seed: int) -> None:
    sent = [str(number).encode() for number in range(60)]
    with Broker(topics={"orders": 1}) as broker, broker.chaos(seed=seed, one_in=4) as chaos:
        producer = idempotent_producer(broker)
        for value in sent:
            producer.produce("orders", value)
            assert 0 == producer.flush(60)

        assert sent == values(broker)
        assert any(line.startswith("Produce") for line in chaos.schedule)

        consumer = Consumer(
            {
                "bootstrap.servers": broker.bootstrap_servers,
                "group.id": "readers",
                "auto.offset.reset": "earliest",
                "reconnect.backoff.max.ms": 100,
                # By default it forgets its only broker, and what it has asked it.
                "metadata.recovery.strategy": "none",
                # It asks for the topics again no sooner than this, and joins its group only then.
                "topic.metadata.refresh.interval.ms": 1000,
            }
        )
        consumer.subscribe(["orders"])
        read: list[bytes | None] = []
        while len(read) < len(sent):
            message = consumer.poll(30)
            assert message is not None, chaos.schedule
            if message.error() is None:
                read.append(message.value())
        assert sent == read
        chaos.stop()
        consumer.close()
        assert all(f"chaos of seed {seed}: {line}" in broker.log for line in chaos.schedule)


def test_chaos_seed_determines_the_schedule_of_faults() -> None:
    """
    Two clients send the same requests.
    """

    def schedule(seed: int, process: bool) -> list[str]:
        with Broker(topics={"orders": 1}, process=process) as broker:
            with broker.chaos(seed=seed, one_in=3) as chaos:
                for _ in range(3):
                    assert Sent(broker, enable_idempotence=True).error is None
            assert Sent(broker).error is None, "and nothing any more"
            return [line for line in chaos.schedule if line.startswith("InitProducerId")]

    first = schedule(7, False)

    assert first
    assert first == schedule(7, True)
    assert first != schedule(8, False)


def crashed(seed: int, count: int) -> list[str]:
    """
    End a broker by chaos while an idempotent producer writes; nothing is lost or repeated.
    """
    sent = [str(number).encode() for number in range(count)]
    with Broker(
        disk=CrashableFiles(), topics={"orders": 1}, config={"log.flush.interval.messages": 1}
    ) as broker:
        producer = idempotent_producer(broker)
        with broker.chaos(seed=seed, one_in=10) as chaos:
            for value in sent:
                producer.produce("orders", value)
                chaos.crash(one_in=5)
                assert 0 == producer.flush(60), chaos.schedule
        assert sent == values(broker), chaos.schedule
        assert all(f"chaos of seed {seed}: {line}" in broker.log for line in chaos.schedule)
        return [line for line in chaos.schedule if line.startswith("crash")]


def test_chaos_crashes_lose_nothing_acknowledged() -> None:
    first = crashed(7, 40)

    assert {"kill", "power loss"} == {line.split(": ")[1].split(",")[0] for line in first}
    assert first[:2] == crashed(7, 20)[:2]
    assert first != crashed(8, 20)


def test_chaos_crashes_require_a_broker_that_can_be_restarted(broker: Broker) -> None:
    with broker.chaos(seed=1) as chaos:
        with pytest.raises(ValueError, match="at least 1, not 0"):
            chaos.crash(one_in=0)
        assert chaos.crash()
        assert ["crash 1: kill"] == chaos.schedule, "its disk cannot lose power"
    with Broker(process=True) as other, other.chaos(seed=1) as chaos:
        with pytest.raises(BrokerError, match="leave out process=True"):
            chaos.crash()
        assert other.is_running


def test_chaos_affects_the_given_fraction_of_requests(broker: Broker) -> None:
    with pytest.raises(ValueError, match="at least 1, not 0"):
        broker.chaos(seed=1, one_in=0)
