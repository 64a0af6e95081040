from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from io import BufferedRWPair

import pytest

from benchmarks.programs import Program, compiler
from tests.support.broker_process import free_port

pytestmark = pytest.mark.skipif(compiler() is None, reason="no C compiler")

PRODUCE, FETCH, LIST_OFFSETS, METADATA = range(4)
SMALL, LARGE = 1000, 3_000_000


class Server:
    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.asked = 0
        self.size = SMALL

    def run(self) -> None:
        while True:
            try:
                peer, _ = self._listener.accept()
            except OSError:
                return
            with peer, peer.makefile("rwb") as stream:
                while frame := next_frame(stream):
                    self.asked += 1
                    body = frame[4:8] + struct.pack(">i", self.asked) + bytes(self.size)
                    stream.write(struct.pack(">i", len(body)) + body)
                    stream.flush()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


def next_frame(stream: BufferedRWPair) -> bytes:
    """
    The frame without its size; empty at the end of the connection.
    """
    head = stream.read(4)
    return stream.read(*struct.unpack(">i", head)) if head else b""


class Client:
    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self._stream = self._socket.makefile("rwb")
        self._number = 0

    def ask(self, *requests: tuple[int, bytes], client_id: bytes = b"c") -> list[int]:
        """
        Send all *requests* of an API with one body, and return the numbers in the answers.
        """
        for api, body in requests:
            self._number += 1
            head = struct.pack(">hhih", api, 9, self._number, len(client_id)) + client_id
            self._stream.write(struct.pack(">i", len(head + body)) + head + body)
        self._stream.flush()
        numbers = []
        for expected in range(self._number - len(requests) + 1, self._number + 1):
            answer = next_frame(self._stream)
            correlation_id, number = struct.unpack_from(">ii", answer)
            assert expected == correlation_id
            assert not any(answer[8:])
            numbers.append(number)
        return numbers

    def close(self) -> None:
        self._stream.close()
        self._socket.close()


@pytest.fixture(scope="module", name="program")
def make_program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    return Program("remember", tmp_path_factory.mktemp("remember"))


@pytest.fixture(name="server")
def make_server() -> Iterator[Server]:
    server = Server()
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    yield server
    server.close()
    thread.join()


@pytest.fixture(name="client")
def make_client(program: Program, server: Server) -> Iterator[Client]:
    port = free_port()
    with program.started(f"port={port}", f"broker={server.port}") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "listening\n"
        client = Client(port)
        yield client
        client.close()


@pytest.mark.parametrize("api", [FETCH, LIST_OFFSETS])
@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_repeated_request_is_answered_from_memory(
    server: Server, client: Client, api: int, size: int
) -> None:
    server.size = size

    assert [1] == client.ask((api, b"x"))
    assert [1, 1] == client.ask((api, b"x"), (api, b"x"), client_id=b"another")
    assert [2] == client.ask((api, b"y"))
    assert [1, 2] == client.ask((api, b"x"), (api, b"y"))
    assert 2 == server.asked


def test_other_requests_are_passed_on(server: Server, client: Client) -> None:
    # One after the other: behind a request that was passed on, none is answered from memory.
    assert [1] == client.ask((PRODUCE, b"x"))
    assert [2] == client.ask((PRODUCE, b"x"))
    assert [3] == client.ask((METADATA, b"x"))
    assert [4] == client.ask((METADATA, b"x"))

    server.size = 0
    assert [5] == client.ask((FETCH, b"nothing yet"))
    assert [6] == client.ask((FETCH, b"nothing yet"))


def test_responses_keep_the_order_of_the_requests(server: Server, client: Client) -> None:
    client.ask((FETCH, b"x"))

    assert [1, 2, 3, 4] == client.ask(
        (FETCH, b"x"), (METADATA, b""), (FETCH, b"x"), (PRODUCE, b"x")
    )
