"""
Brokers that are killed, and machines that lose power.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.testing import Broker, BrokerError, NotRunning
from barnabas.testing.disks.crashable import CrashableFiles
from barnabas.testing.disks.memory import MemoryFiles
from tests.support.broker_process import answers
from tests.support.server import batch, produce_request
from tests.support.wire_client import Disconnected, WireClient


def values(broker: Broker) -> list[bytes | None]:
    return [record.value for record in broker.topic("orders").records()]


@pytest.mark.parametrize("kind", [MemoryFiles, CrashableFiles])
def test_a_killed_broker_has_lost_nothing(kind: type[MemoryFiles]) -> None:
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


def test_a_killed_process_leaves_its_directory(tmp_path: Path) -> None:
    with Broker(tmp_path, process=True, topics={"orders": 1}, start_ms=0) as broker:
        broker.topic("orders").append(["one"])
        broker.clock.advance(days=1)

        broker.kill()
        broker.start()

        assert [b"one"] == values(broker)
        assert broker.clock.now_ms() >= 24 * 3_600_000


def test_a_broker_in_a_directory_is_killed_in_a_process_of_its_own(tmp_path: Path) -> None:
    with Broker(tmp_path) as broker, pytest.raises(BrokerError, match="process=True"):
        broker.kill()


@pytest.mark.parametrize("process", [False, True])
def test_only_a_disk_that_can_crash_loses_power(process: bool) -> None:
    with Broker(process=process) as broker, pytest.raises(BrokerError, match="CrashableFiles"):
        broker.power_loss()


async def test_nobody_is_answered_by_a_broker_that_is_killed() -> None:
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


@pytest.mark.parametrize("keep", ["nothing", "everything", *range(20)])
def test_what_is_acknowledged_after_an_fsync_survives(keep: int) -> None:
    config = {"flush.messages": 1}
    with Broker(disk=CrashableFiles()) as broker:
        orders = broker.topic("orders").create(config=config)
        for number in range(5):
            orders.append([str(number)])

        broker.power_loss(keep)
        broker.start()

        assert [b"0", b"1", b"2", b"3", b"4"] == values(broker)


@pytest.mark.parametrize("keep", range(20))
def test_without_an_fsync_a_prefix_survives(keep: int) -> None:
    with Broker(disk=CrashableFiles(), topics={"orders": 1}) as broker:
        for number in range(5):
            broker.topic("orders").append([str(number)])

        broker.power_loss(keep)
        broker.start()

        found = values(broker) if broker.topic("orders").exists else []
        assert [str(number).encode() for number in range(len(found))] == found
