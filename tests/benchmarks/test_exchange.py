from __future__ import annotations

import socket
import struct
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from benchmarks import wire
from benchmarks.exchange import Exchanger
from benchmarks.programs import compiler

pytestmark = pytest.mark.skipif(compiler() is None, reason="no C compiler")

TOPIC = "topic"
REQUEST = wire.produce_request(TOPIC, b"value", timestamp_ms=1)
ERROR_AT = 8


@pytest.fixture(scope="module", name="exchanger")
def make_exchanger(tmp_path_factory: pytest.TempPathFactory) -> Exchanger:
    return Exchanger(tmp_path_factory.mktemp("exchange"))


class Server:
    """
    Answers a Produce with an error code, and a Fetch with everything that was produced.
    """

    def __init__(self, error_of: Callable[[int], int]) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.connections = 0
        self.produced = 0
        self._error_of = error_of
        self._grown = threading.Condition()

    def run(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            while True:
                try:
                    size = struct.unpack(">i", wire.exactly(connection, 4))[0]
                    frame = wire.exactly(connection, size)
                    answer = self._fetch(frame) if frame[1] == wire.FETCH else self._produce()
                    connection.sendall(struct.pack(">i", len(answer)) + answer)
                except OSError:
                    return

    def _produce(self) -> bytes:
        with self._grown:
            self.produced += 1
            self._grown.notify_all()
            return struct.pack(">ih", 1, self._error_of(self.produced))

    def _fetch(self, frame: bytes) -> bytes:
        following = wire.following_fetch(TOPIC, 0)
        (offset,) = struct.unpack_from(">q", frame, following.offset_at - 4)
        with self._grown:
            self._grown.wait_for(lambda: self.produced > offset, 60)
            batch = wire.batch([b"value"] * (self.produced - offset), 1)
        head = bytes(following.records_at - 4)
        return head + struct.pack(">q", offset) + batch[8:]


@contextmanager
def server(error_of: Callable[[int], int] = lambda number: 0) -> Iterator[Server]:
    running = Server(error_of)
    thread = threading.Thread(target=running.run)
    thread.start()
    try:
        yield running
    finally:
        running.close()
        thread.join()


@pytest.mark.parametrize(("connections", "under_way"), [(1, 1), (1, 50), (20, 1), (3, 7)])
def test_every_request_is_sent_and_answered(
    exchanger: Exchanger, connections: int, under_way: int
) -> None:
    with server() as broker:
        done = exchanger.exchange(
            broker.port,
            REQUEST,
            100,
            error_at=ERROR_AT,
            connections=connections,
            under_way=under_way,
        )

    assert (100, connections) == (broker.produced, broker.connections)
    found = done.acknowledged
    assert 0 < found["p50"] <= found["p95"] <= found["p99"] <= found["worst"]
    assert found["worst"] <= 1000 * done.seconds
    assert {} == done.consumed


def test_fixed_rate_is_kept_whatever_is_answered(exchanger: Exchanger) -> None:
    """
    The last of 100 requests at 500 a second is due after 198 ms, no sooner.
    """
    with server() as broker:
        done = exchanger.exchange(broker.port, REQUEST, 100, rate=500)

    assert 100 == broker.produced
    assert done.seconds >= 0.198


def test_error_in_any_response_ends_the_exchange(exchanger: Exchanger) -> None:
    with (
        server(lambda number: 87 if number == 40 else 0) as broker,
        pytest.raises(subprocess.CalledProcessError),
    ):
        exchanger.exchange(broker.port, REQUEST, 100, error_at=ERROR_AT, under_way=10)


def test_another_connection_reads_what_was_written(exchanger: Exchanger) -> None:
    """
    A record counts as consumed when a Fetch response has returned it.
    """
    with server() as broker:
        follow = wire.following_fetch(TOPIC, 0)
        done = exchanger.exchange(broker.port, REQUEST, 100, rate=1000, follow=follow)

    assert 2 == broker.connections
    assert 0 < done.consumed["p50"] <= done.consumed["worst"]


def test_broker_that_disappears_is_an_error(exchanger: Exchanger) -> None:
    with server() as broker:
        port = broker.port

    with pytest.raises(subprocess.CalledProcessError):
        exchanger.exchange(port, REQUEST, 1)


def test_first_requests_can_be_excluded_from_the_measurement(exchanger: Exchanger) -> None:
    pause = threading.Event()

    def slow_at_first(number: int) -> int:
        pause.wait(0.2 if number == 1 else 0)
        return 0

    with server(slow_at_first) as broker:
        whole = exchanger.exchange(broker.port, REQUEST, 20)
    with server(slow_at_first) as broker:
        rest = exchanger.exchange(broker.port, REQUEST, 20, skip=1)

    assert whole.acknowledged["worst"] >= 200
    assert rest.acknowledged["worst"] <= 1000 * rest.seconds - 200
