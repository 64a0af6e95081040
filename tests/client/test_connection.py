from __future__ import annotations

import re
import socket
import ssl
import struct
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from barnabas.client.cluster import Cluster
from barnabas.client.connection import Connection
from barnabas.client.settings import ClientSettings, Tls
from barnabas.pipeline.errors import Disconnected, NotABroker
from barnabas.protocol.messages.metadata import MetadataRequest
from tests.client.fake_peer import Talk, greet, peer, request_from, until_closed

MiB = 1 << 20
GiB = 1 << 30
ASKED = MetadataRequest(topics=None)
SOON_S = 10
"""
Of a busy machine: far more than what is waited for, far less than the default of 30 seconds.
"""


def settings(port: int, timeout_s: float = 20.0) -> ClientSettings:
    return ClientSettings((("127.0.0.1", port),), timeout_s=timeout_s)


def connect(port: int, timeout_s: float = 20.0) -> Connection:
    return Connection("127.0.0.1", port, settings(port, timeout_s))


def announces(size: int) -> Talk:
    def talk(connection: socket.socket) -> None:
        request_from(connection)
        connection.sendall(struct.pack(">i", size))
        until_closed(connection)

    return talk


def greets_and(talk: Talk) -> Talk:
    def both(connection: socket.socket) -> None:
        greet(connection)
        talk(connection)

    return both


def sends(data: bytes) -> Talk:
    def talk(connection: socket.socket) -> None:
        request_from(connection)
        connection.sendall(data)
        until_closed(connection)

    return talk


@pytest.mark.parametrize(
    ("talk", "sentence"),
    [
        (announces(MiB + 1), "it announces a first answer of 1,048,577 bytes, and that of a broker"
                             " has at most 1,048,576."),
        (announces(2**31 - 1), "it announces a first answer of 2,147,483,647 bytes"),
        (announces(-7), "it announces a first answer of -7 bytes"),
        (announces(3), "it announces a first answer of 3 bytes"),
        (sends(b"HTTP/1.1 400 Bad Request\r\n\r\n"), "it answers in HTTP."),
        (sends(b"\x15\x03\x03\x00\x02\x02\x28"), "it answers in TLS: set security.protocol to SSL"
                                                 " or SASL_SSL."),
        (sends(b"SSH-2.0-OpenSSH_9.9\r\n"), "it announces a first answer of 1,397,966,893 bytes"),
        (sends(struct.pack(">iihi", 10, 0, 0, 1 << 30)), "its first answer cannot be read: "),
        (sends(struct.pack(">iihi", 10, 77, 0, 0)), "its first answer cannot be read: "),
    ],
)  # fmt: skip
def test_peer_that_is_no_broker_is_named_and_not_retried(talk: Talk, sentence: str) -> None:
    begun = time.monotonic()
    with peer(talk) as port:
        expected = re.escape(f"127.0.0.1:{port} is no Kafka broker: {sentence}")
        with pytest.raises(NotABroker, match=f"^{expected}"):
            connect(port)
        with pytest.raises(NotABroker, match=f"^{expected}"), Cluster(settings(port)) as cluster:
            cluster.topics()

    assert time.monotonic() - begun < SOON_S


def test_address_that_is_no_broker_is_skipped() -> None:
    with (
        peer(sends(b"HTTP/1.1 400 Bad Request\r\n\r\n")) as wrong,
        peer(greets_and(until_closed)) as right,
    ):
        both = ClientSettings((("127.0.0.1", wrong), ("127.0.0.1", right)))
        for _ in range(8):
            with Cluster(both) as cluster:
                assert f"127.0.0.1:{right}" == cluster.any().address


@pytest.mark.parametrize("size", [GiB + 1, 2**31 - 1, -1, 0])
def test_response_that_is_too_large_is_refused_before_it_is_read(size: int) -> None:
    with peer(greets_and(announces(size))) as port:
        connection = connect(port)

        with pytest.raises(
            Disconnected,
            match=rf"^The connection to 127\.0\.0\.1:{port} is lost: an answer of {size:,} bytes"
            r" was announced, and at most 1,073,741,824 are taken\.$",
        ):
            connection.ask(ASKED)
        assert connection.is_closed


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_memory_is_allocated_as_a_response_arrives() -> None:
    """
    The largest response is announced, and its first 8 MiB arrive. Sockets hold less than that, so
    the client has received them when all are sent.
    """
    resident: list[int] = []

    def talk(connection: socket.socket) -> None:
        request_from(connection)
        connection.sendall(struct.pack(">i", GiB))
        before = resident_bytes()
        connection.sendall(bytes(8 * MiB))
        resident.append(resident_bytes() - before)

    with peer(greets_and(talk)) as port:
        connection = connect(port)
        with pytest.raises(Disconnected, match="closed in the middle of an answer"):
            connection.ask(ASKED)

    assert resident[0] < 128 * MiB


def resident_bytes() -> int:
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.partition("VmRSS:")[2].split()[0])


def test_peer_that_never_answers_times_out() -> None:
    begun = time.monotonic()
    with peer(until_closed) as port:
        sentence = rf"^The connection to 127\.0\.0\.1:{port} is lost: no answer in 0\.3 seconds\.$"
        with pytest.raises(Disconnected, match=sentence):
            connect(port, 0.3)
        with pytest.raises(Disconnected, match=sentence), Cluster(settings(port, 0.3)) as cluster:
            cluster.topics()

    assert time.monotonic() - begun < SOON_S


def test_peer_that_answers_byte_by_byte_times_out() -> None:
    """
    The timeout applies to the whole response, not to each part.
    """
    over = threading.Event()

    def talk(connection: socket.socket) -> None:
        request_from(connection)
        connection.sendall(struct.pack(">i", 100_000))
        with suppress(OSError):
            while not over.wait(0.05):
                connection.sendall(b"\0")

    begun = time.monotonic()
    with peer(greets_and(talk)) as port:
        connection = connect(port, 0.4)
        with pytest.raises(Disconnected, match=r"no answer in 0\.4 seconds\.$"):
            connection.ask(ASKED)
        over.set()

    assert time.monotonic() - begun < SOON_S


@pytest.mark.parametrize("sent", [0, 2, 4, 9])
@pytest.mark.parametrize("greeted", [False, True])
def test_peer_that_closes_during_a_response_is_an_error(sent: int, greeted: bool) -> None:
    def talk(connection: socket.socket) -> None:
        request_from(connection)
        connection.sendall(struct.pack(">iiii", 100, 1, 2, 3)[:sent])

    what = "closed in the middle of an answer" if sent else "closed before an answer came"
    talks = greets_and(talk) if greeted else talk
    sentence = rf"^The connection to 127\.0\.0\.1:\d+ is lost: it was {what}\.$"
    with peer(talks) as port, pytest.raises(Disconnected, match=sentence):
        connect(port).ask(ASKED)


def test_response_to_another_request_is_an_error() -> None:
    with peer(greets_and(sends(struct.pack(">iii", 8, 77, 0)))) as port:
        connection = connect(port)
        with pytest.raises(Disconnected, match="answer 77 came instead of answer 1"):
            connection.ask(ASKED)


def test_peer_without_tls_is_reported() -> None:
    talk = sends_at_once(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    with peer(talk) as port, pytest.raises(Disconnected, match=f":{port} cannot be reached: "):
        Connection("127.0.0.1", port, ClientSettings((), timeout_s=5, tls=Tls()))


def test_missing_key_file_leaves_no_socket_open(tmp_path: Path) -> None:
    tls = Tls(key_file=str(tmp_path / "none.pem"))
    with peer(until_closed) as port, pytest.raises(Disconnected, match="cannot be reached"):
        Connection("127.0.0.1", port, ClientSettings((), timeout_s=5, tls=tls))


def sends_at_once(data: bytes) -> Talk:
    def talk(connection: socket.socket) -> None:
        connection.sendall(data)
        with suppress(OSError, ssl.SSLError):
            until_closed(connection)

    return talk
