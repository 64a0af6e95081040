"""
Brokers in a test process that forks, as Python's multiprocessing does on Linux by default.
"""

from __future__ import annotations

import multiprocessing
import os
import select
import signal
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from barnabas.testing import Broker, NotRunning
from barnabas.testing.hosts.child import ChildHost
from tests.support.broker_process import answers

pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")

PATIENCE_S = 30.0


def nothing() -> None:
    """
    The work of a child that only exists.
    """


@contextmanager
def forked(work: Callable[[], object] = nothing) -> Iterator[int]:
    """
    A forked child that has done *work*, and waits for the end of the block.

    Raises:
        AssertionError: the work raised an error in the child.
    """
    done, tell = os.pipe()
    wait, end = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.close(end)
            work()
            os.write(tell, b"+")
            os.read(wait, 1)
        except BaseException:
            os.write(tell, traceback.format_exc().encode()[-60_000:])
        finally:
            os._exit(0)
    os.close(tell)
    os.close(wait)
    try:
        readable, _, _ = select.select([done], [], [], PATIENCE_S)
        answer = os.read(done, 60_000) if readable else b"the child hangs"
        assert b"+" == answer, answer.decode()
        yield pid
    finally:
        os.close(end)
        os.close(done)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)


def wait_for_connections(broker: Broker, count: int) -> None:
    def connected() -> bool:
        connections = broker._host._running.broker.connections  # type: ignore[attr-defined]
        return len(connections) >= count

    broker.wait_until(connected)


def test_stop_closes_port_and_connections_while_a_forked_child_lives() -> None:
    with Broker() as broker, connect(broker.port) as client:
        wait_for_connections(broker, 1)
        with forked():
            broker.stop()
            assert b"" == client.recv(1)
            with pytest.raises(ConnectionRefusedError):
                connect(broker.port)


def test_broker_starts_again_on_its_port_while_a_forked_child_lives() -> None:
    with Broker(topics={"orders": 1}) as broker, connect(broker.port):
        wait_for_connections(broker, 1)
        with forked():
            for _ in range(2):
                broker.restart()
                assert answers(broker.port)
                assert ["orders"] == [topic.name for topic in broker.topics]


def test_http_listener_is_free_after_a_stop_while_a_forked_child_lives() -> None:
    config = {"barnabas.http.listener": "127.0.0.1:0"}
    with Broker(config=config) as broker:
        http = broker._host._running.broker.http  # type: ignore[attr-defined]
        with forked():
            broker.stop()
            with pytest.raises(ConnectionRefusedError):
                connect(http.address.port)


def test_parent_serves_clients_after_a_fork_and_after_the_end_of_the_child() -> None:
    with Broker(topics={"orders": 1}) as broker, connect(broker.port):
        wait_for_connections(broker, 1)
        with forked(nothing):
            assert answers(broker.port)
            broker.topic("orders").append(["one"])
        assert answers(broker.port)
        assert 1 == len(broker.topic("orders").records())


@pytest.mark.parametrize("process", [False, True])
def test_forked_child_uses_clients_and_cannot_control_the_broker(process: bool) -> None:
    with Broker(process=process, topics={"orders": 1}) as broker:

        def in_child() -> None:
            assert answers(broker.port)
            assert broker.bootstrap_servers == f"127.0.0.1:{broker.port}"
            assert not broker.is_running
            for use in (lambda: broker.topics, broker.clock.now_ms, broker.start, broker.kill):
                with pytest.raises(NotRunning, match="the process that forked this one"):
                    use()
            assert "the process that forked this one" in broker.summary()
            broker.stop()
            broker.__exit__(None, None, None)

        with forked(in_child):
            assert ["orders"] == [topic.name for topic in broker.topics]
            assert answers(broker.port)


def test_forked_child_can_have_a_broker_of_its_own() -> None:
    with Broker(topics={"orders": 1}) as broker:

        def in_child() -> None:
            with Broker(topics={"audit": 1}) as own:
                assert answers(own.port)
                assert ["audit"] == [topic.name for topic in own.topics]

        with forked(in_child):
            assert ["orders"] == [topic.name for topic in broker.topics]


def test_child_of_multiprocessing_keeps_nothing_of_a_broker() -> None:
    with Broker() as broker, connect(broker.port) as client:
        wait_for_connections(broker, 1)
        child = multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,))
        child.start()
        try:
            broker.stop()
            assert b"" == client.recv(1)
            broker.start()
            assert answers(broker.port)
        finally:
            child.kill()
            child.join()


def test_fork_while_a_broker_stops_keeps_nothing_of_it() -> None:
    broker = Broker()
    with broker:
        port = broker.port
        running = broker._host._running  # type: ignore[attr-defined]
        # The host has given the broker up, and its thread has not ended yet.
        broker._host._running = None  # type: ignore[attr-defined]
        with forked():
            running.stop()
            with pytest.raises(ConnectionRefusedError):
                connect(port)


# A broker in a process of its own


def test_process_of_a_broker_ends_at_once_while_a_forked_child_lives() -> None:
    with Broker(process=True) as broker:
        assert isinstance(broker._host, ChildHost)
        child = broker._host._child
        assert child is not None
        with forked():
            began = time.monotonic()
            broker.__exit__(None, None, None)
            assert time.monotonic() - began < 5
            assert 0 == child._process.returncode


@pytest.mark.parametrize("runs_hooks", [True, False])
def test_process_of_a_broker_ends_with_its_test_while_a_forked_child_lives(
    runs_hooks: bool, tmp_path: Path
) -> None:
    """
    A child that was forked in C runs no hooks of Python; then the test has to end the broker.
    """
    leave = "broker.__exit__(None, None, None); sys.exit(process.returncode != 0)"
    ending = "os.kill(os.getpid(), 9)" if runs_hooks else leave
    fork = "os.fork()" if runs_hooks else "ctypes.CDLL(None).fork()"
    script = f"""
import ctypes, os, sys, time
from barnabas.testing import Broker
broker = Broker(process=True).start()
process = broker._host._child._process
child = {fork}
if not child:
    os.close(1)
    os.close(2)
    time.sleep(60)
    os._exit(0)
print(child, process.pid, flush=True)
{ending}
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script],
        stdout=subprocess.PIPE,
        timeout=60,
        check=False,
    )
    child, process = map(int, done.stdout.split())
    try:
        assert done.returncode == (-signal.SIGKILL if runs_hooks else 0)
        deadline = time.monotonic() + 8
        while is_alive(process):
            assert time.monotonic() < deadline, "the broker outlives its test"
            time.sleep(0.02)
    finally:
        os.kill(child, signal.SIGKILL)


def is_alive(pid: int) -> bool:
    """
    Whether the process runs; a zombie does not.
    """
    try:
        return ") Z" not in Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
