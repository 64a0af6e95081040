from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.testing import Broker, BrokerDied, InvalidConfig, UnknownTopic
from barnabas.testing.disks.memory import MemoryFiles
from barnabas.testing.hosts.child import ChildHost
from tests.support.broker_process import answers


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(process=True, clock="still", start_ms=0) as broker:
        yield broker


def pid_of(broker: Broker) -> int:
    assert isinstance(broker._host, ChildHost)
    assert broker._host._child is not None
    return broker._host._child._process.pid


def test_broker_in_a_child_process_shows_topics_records_and_groups(broker: Broker) -> None:
    assert pid_of(broker) != os.getpid()
    assert answers(broker.port)
    orders = broker.topic("orders").create(partitions=2).append([("a", "1"), ("b", "2")])

    assert [b"1", b"2"] == sorted(record.value or b"" for record in orders.records())
    assert 2 == len(orders.segments)
    assert "orders-1" in orders.explain(1)
    assert {} == broker.groups
    assert "Created topic orders" in broker.log


def test_clock_of_a_child_process_can_be_advanced(broker: Broker) -> None:
    topic = broker.topic("old").create(config={"retention.ms": 1000}).append(["a"])
    before = broker.clock.now_ms()

    broker.clock.advance(hours=1)

    assert 3_600_000 == broker.clock.now_ms() - before
    assert [] == topic.records()


def test_errors_of_a_child_process_are_the_same(broker: Broker) -> None:
    with pytest.raises(UnknownTopic, match="nothing does not exist"):
        broker.topic("nothing").records()
    with pytest.raises(InvalidConfig, match="did you mean"):
        Broker(process=True, config={"num.partition": 1}).start()
    with pytest.raises(ValueError, match="another process"):
        Broker(process=True, disk=MemoryFiles())


def test_data_in_memory_survives_a_restart_of_the_broker() -> None:
    with Broker(process=True, topics={"orders": 1}) as broker:
        broker.topic("orders").append(["one"])
        port, pid = broker.port, pid_of(broker)

        broker.restart()

        assert (port, pid) == (broker.port, pid_of(broker))
        assert 1 == len(broker.topic("orders").records())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_dead_child_process_is_reported_and_can_be_restarted(tmp_path: Path) -> None:
    with Broker(tmp_path, process=True, topics={"orders": 1}) as broker:
        broker.topic("orders").append(["one"])
        os.kill(pid_of(broker), signal.SIGKILL)

        with pytest.raises(BrokerDied, match="has ended, status -9"):
            broker.topic("orders").records()

        broker.restart()
        assert [b"one"] == [record.value for record in broker.topic("orders").records()]
