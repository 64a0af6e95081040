from __future__ import annotations

import logging
import socket
import sys
import threading
from pathlib import Path

import pytest

from barnabas.testing import (
    Broker,
    InvalidConfig,
    InvalidTopic,
    NotRunning,
    StartFailed,
    WaitTimeout,
)
from barnabas.testing.defaults import Config
from barnabas.testing.disks.crashable import CrashableFiles
from barnabas.testing.disks.memory import MemoryFiles
from tests.support.broker_process import answers, wait_for
from tests.support.commands import run


def test_broker_answers_only_inside_its_context() -> None:
    with Broker() as broker:
        host, _, port = broker.bootstrap_servers.partition(":")

        assert "127.0.0.1" == host
        assert answers(int(port))

    assert not answers(int(port))


async def test_broker_does_not_touch_the_event_loop_of_the_test() -> None:
    async with Broker(topics={"orders": 2}) as broker:
        assert answers(broker.port)
        assert 2 == broker.topic("orders").partitions

    assert not answers(broker.port)


def test_brokers_are_independent_of_each_other() -> None:
    with Broker(topics={"orders": 1}) as one, Broker() as other:
        assert one.port != other.port
        assert not other.topic("orders").exists


@pytest.mark.parametrize("process", [False, True])
def test_ports_of_several_listeners_survive_a_restart(process: bool) -> None:
    config = {
        "listener.security.protocol.map": "ONE:PLAINTEXT,TWO:PLAINTEXT",
        "listeners": "ONE://127.0.0.1:0,TWO://127.0.0.1:0",
        "advertised.listeners": "ONE://localhost:0,TWO://broker:29092",
    }
    with Broker(process=process, config=config) as broker:
        before = broker.listeners

        broker.restart()

        assert before == broker.listeners
        assert {"ONE": f"localhost:{broker.port}", "TWO": "broker:29092"} == before
        assert f"localhost:{broker.port}" == broker.bootstrap_servers
        assert answers(broker.port)


def test_broker_leaves_no_threads_behind() -> None:
    with Broker():
        pass
    before = threading.active_count()

    with Broker(topics={"t": 1}) as broker:
        broker.topic("t").append(["a"])

    wait_for(lambda: threading.active_count() <= before, "the threads to end", 30)


def test_port_and_data_survive_a_restart() -> None:
    with Broker(topics={"orders": 1}) as broker:
        port = broker.port
        broker.topic("orders").append(["one"])

        broker.restart()

        assert (port, [b"one"]) == (broker.port, values(broker))
        assert answers(port)


def test_directory_keeps_the_data_for_the_next_broker(tmp_path: Path) -> None:
    with Broker(tmp_path / "data", topics={"orders": 1}) as broker:
        broker.topic("orders").append(["one"])

    assert (tmp_path / "data" / "orders-0" / "00000000000000000000.log").exists()
    with Broker(tmp_path / "data") as broker:
        assert [b"one"] == values(broker)


@pytest.mark.parametrize("kind", [MemoryFiles, CrashableFiles])
def test_disk_object_keeps_the_data_for_the_next_broker(kind: type[MemoryFiles]) -> None:
    disk = kind()
    with Broker(disk=disk, topics={"orders": 1}) as broker:
        broker.topic("orders").append(["one"])

    with Broker(disk=disk) as broker:
        assert [b"one"] == values(broker)


def test_broker_takes_either_a_disk_or_a_directory(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not both"):
        Broker(tmp_path, disk=MemoryFiles())


def test_clock_runs_or_stands_still() -> None:
    with pytest.raises(ValueError, match="'running' or 'still', not 'stopped'"):
        Broker(clock="stopped")  # type: ignore[arg-type]  # the mistake


def test_existing_topics_are_not_created_again(tmp_path: Path) -> None:
    for _ in range(2):
        with Broker(tmp_path, topics={"orders": 2}) as broker:
            assert 2 == broker.topic("orders").partitions


def test_broker_whose_topics_cannot_be_created_is_stopped() -> None:
    broker = Broker(topics={"a b": 1})

    with pytest.raises(InvalidTopic, match="a b"):
        broker.start()

    assert not answers(broker.port)


def test_broker_that_is_never_stopped_ends_with_its_process() -> None:
    script = "from barnabas.testing import Broker; Broker(topics={'t': 1}).start(); print('end')"

    done = run(sys.executable, "-c", script)

    assert (0, "end\n", "") == (done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("process", [False, True])
def test_two_brokers_cannot_share_a_directory(tmp_path: Path, process: bool) -> None:
    with Broker(tmp_path), pytest.raises(StartFailed, match="lock"):
        Broker(tmp_path, process=process).start()


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"log.retention.mss": 1}, "did you mean log.retention.ms"),
        ({"log.retention.ms": "soon"}, "log.retention.ms"),
        ({"num.partitions": 0}, "num.partitions"),
    ],
)
def test_invalid_option_is_named_in_the_error(config: dict[str, str | int], message: str) -> None:
    with pytest.raises(InvalidConfig, match=message):
        Broker(config=config).start()


def test_options_may_be_numbers_booleans_or_strings() -> None:
    config: Config = {
        "num.partitions": 4,
        "auto.create.topics.enable": False,
        "log.retention.ms": "60000",
    }
    with Broker(config=config) as broker:
        broker.topic("orders").create(-1)

        assert 4 == broker.topic("orders").partitions


def test_error_of_an_unstarted_broker_says_how_to_start_it() -> None:
    broker = Broker()

    for use in (
        lambda: broker.bootstrap_servers,
        lambda: broker.topic("orders").records(),
        lambda: broker.groups,
        lambda: broker.clock.advance(days=1),
    ):
        with pytest.raises(NotRunning, match="with block"):
            use()


def test_error_of_a_stopped_broker_says_that_it_is_stopped() -> None:
    with Broker() as broker:
        pass

    with pytest.raises(NotRunning, match="is stopped"):
        broker.topic("orders").create()
    assert f"127.0.0.1:{broker.port}" == broker.bootstrap_servers, "clients may still ask for it"


def test_restart_fails_if_the_port_was_taken_meanwhile() -> None:
    with Broker() as broker:
        broker.stop()
        taken = socket.create_server(("127.0.0.1", broker.port))
        with taken, pytest.raises(StartFailed, match=r"taken|in use"):
            broker.start()

        broker.start()

        assert answers(broker.port)


def test_broker_log_is_captured(caplog: pytest.LogCaptureFixture) -> None:
    level = logging.getLogger("barnabas").level
    with Broker(topics={"orders": 1}) as broker:
        assert "Created topic orders with 1 partition" in broker.log
        logging.getLogger("barnabas.server").warning("the castle is closed")

    assert "the castle is closed" in broker.log
    assert ["the castle is closed"] == [record.getMessage() for record in caplog.records]
    assert level == logging.getLogger("barnabas").level


def test_wait_returns_the_value_that_became_true() -> None:
    with Broker(topics={"orders": 1}) as broker:
        topic = broker.topic("orders")
        threading.Timer(0.02, topic.append, [["one"]]).start()

        assert [b"one"] == [r.value for r in broker.wait_until(topic.records)]


async def test_wait_does_not_block_the_event_loop() -> None:
    async with Broker(topics={"orders": 1}) as broker:
        topic = broker.topic("orders")
        threading.Timer(0.02, topic.append, [["one"]]).start()

        assert await broker.wait_until_async(topic.records)


def test_timeout_of_a_wait_reports_what_was_seen() -> None:
    def two_records() -> bool:
        assert 2 == len(broker.topic("orders").records()), "one is missing"
        return True

    with Broker(topics={"orders": 1}) as broker:
        broker.topic("orders").append([("k", "one")])

        with pytest.raises(WaitTimeout) as caught:
            broker.wait_until(two_records, seconds=0.02, what="the second order")

    message = str(caught.value)
    assert message.startswith("the second order did not come true within 0.02 s: at last it raised")
    assert "one is missing" in message
    assert "orders: 1 partition, 1 record" in message
    assert "b'k' b'one'" in message
    assert "groups: none" in message
    assert "Created topic orders" in message


def test_timeout_message_of_a_wait_has_bounded_size() -> None:
    with Broker(topics={f"topic-{n}": 1 for n in range(15)}) as broker:
        broker.topic("topic-0").append(["x" * 1000] * 100)

        with pytest.raises(WaitTimeout) as caught:
            broker.wait_until(lambda: "" if broker else None, seconds=0.0)

    assert len(str(caught.value)) < 6_000
    assert "and 5 more" in str(caught.value)
    assert "(1000 bytes)" in str(caught.value)


def values(broker: Broker) -> list[bytes | None]:
    return [record.value for record in broker.topic("orders").records()]
