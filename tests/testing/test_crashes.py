from __future__ import annotations

import time
from itertools import count
from pathlib import Path
from random import Random

import pytest
from confluent_kafka import KafkaError, Message, Producer

from barnabas.testing import Broker, BrokerError, NotRunning
from barnabas.testing.disks.crashable import CrashableFiles
from barnabas.testing.disks.memory import MemoryFiles
from tests.support.broker_process import answers
from tests.support.server import batch, produce_request
from tests.support.wire_client import Disconnected, WireClient


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "instant" in metafunc.fixturenames:
        metafunc.parametrize("instant", range(metafunc.config.getoption("--power-losses")))


def values(broker: Broker) -> list[bytes | None]:
    return [record.value for record in broker.topic("orders").records()]


@pytest.mark.parametrize("kind", [MemoryFiles, CrashableFiles])
def test_kill_loses_no_written_data(kind: type[MemoryFiles]) -> None:
    with Broker(disk=kind(), topics={"orders": 1}) as broker:
        broker.topic("orders").append(["one"])
        port = broker.port

        broker.kill()

        assert not answers(port)
        with pytest.raises(NotRunning):
            values(broker)
        broker.start()
        assert "was not stopped cleanly" in broker.log
        assert (port, [b"one"]) == (broker.port, values(broker))


def test_synced_data_survives_a_power_loss_after_a_kill() -> None:
    """
    A kill leaves unsynced data to the operating system, and the power loss discards it.
    """
    with Broker(disk=CrashableFiles()) as broker:
        safe = broker.topic("safe").create(config={"flush.messages": 1}).append(["one"])
        orders = broker.topic("orders").create().append(["one"])

        broker.kill()
        broker.start()
        found = [len(topic.records()) for topic in (safe, orders)]
        orders.append(["two"])
        broker.power_loss(keep="nothing")
        broker.start()

        assert [1, 1] == found
        assert [b"one"] == [record.value for record in safe.records()]
        assert b"two" not in values(broker)


def test_killed_process_keeps_its_directory(tmp_path: Path) -> None:
    with Broker(tmp_path, process=True, topics={"orders": 1}, start_ms=0) as broker:
        broker.topic("orders").append(["one"])
        broker.clock.advance(days=1)

        broker.kill()
        broker.start()

        assert [b"one"] == values(broker)
        assert broker.clock.now_ms() >= 24 * 3_600_000


def test_broker_with_a_directory_is_killed_in_a_child_process(tmp_path: Path) -> None:
    with Broker(tmp_path) as broker, pytest.raises(BrokerError, match="process=True"):
        broker.kill()


@pytest.mark.parametrize("process", [False, True])
def test_power_loss_requires_a_simulated_disk(process: bool) -> None:
    with Broker(process=process) as broker, pytest.raises(BrokerError, match="CrashableFiles"):
        broker.power_loss()


async def test_killed_broker_answers_nobody() -> None:
    with Broker(topics={"orders": 1}) as broker:
        async with await WireClient.open(broker.port) as client:
            fault = broker.faults.delay("Produce", seconds=0.2)
            client.send(produce_request("orders", batch("late")), version=9)
            await broker.wait_until_async(lambda: fault.count)

            broker.kill()

            with pytest.raises(Disconnected):
                await client.receive()
        broker.start()
        assert [] == values(broker)


@pytest.mark.parametrize("config", [{"flush.messages": 1}, {}], ids=["durable", "not"])
@pytest.mark.parametrize("keep", ["nothing", "everything", *range(20)])
def test_a_power_loss_leaves_a_prefix_with_all_records_that_were_synced(
    keep: int, config: dict[str, int]
) -> None:
    with Broker(disk=CrashableFiles()) as broker:
        orders = broker.topic("orders").create(config=config)
        for number in range(5):
            orders.append([str(number)])

        broker.power_loss(keep)
        broker.start()

        found = values(broker) if orders.exists else []
        assert [str(number).encode() for number in range(len(found))] == found
        if config:
            assert 5 == len(found)


class Sending:
    """
    A producer that sends 0, 1, 2 and so on once each, and records which are acknowledged.
    """

    def __init__(self, broker: Broker) -> None:
        self.acknowledged: list[int] = []
        self._numbers = count()
        self._producer = Producer(
            {
                "bootstrap.servers": broker.bootstrap_servers,
                "linger.ms": 0,
                "retries": 0,
                "max.in.flight": 1,
                "log_level": 0,
            }
        )

    def until(self, most: int) -> None:
        while len(self.acknowledged) < most:
            for _ in range(5):
                self._send(next(self._numbers))
            self._producer.poll(0.005)
        self._send(next(self._numbers))

    def stop(self) -> None:
        self._producer.poll(0.01)
        self._producer.purge()
        self._producer.flush(10)

    def _send(self, number: int) -> None:
        def heard(error: KafkaError | None, _message: Message) -> None:
            if error is None:
                self.acknowledged.append(number)

        self._producer.produce("orders", str(number), on_delivery=heard)


@pytest.mark.interop
@pytest.mark.parametrize("config", [{"flush.messages": 1}, {}], ids=["durable", "not"])
def test_power_loss_at_any_operation_loses_nothing_durable(
    instant: int, config: dict[str, int]
) -> None:
    chance = Random(instant)
    with Broker(disk=CrashableFiles()) as broker:
        broker.topic("orders").create(config=config)
        sending = Sending(broker)
        sending.until(chance.randrange(100))
        time.sleep(chance.uniform(0, 0.003))

        broker.power_loss(instant)

        sending.stop()
        broker.start()
        found = [int(value or -1) for value in values(broker)]
        assert list(range(len(found))) == found
        if config:
            assert len(found) > max(sending.acknowledged, default=-1)
