"""
A TLS client that reads nothing costs little memory, whatever it sends.
"""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from pathlib import Path
from typing import Final

from barnabas.server.network.resources import TLS_READ_BYTES
from tests.support.broker_process import Barnabas
from tests.support.certificates import Certificates
from tests.support.key_updates import KeyUpdatingClient
from tests.support.limits import stated

UPDATES: Final = 20_000


def sent_by(peer: socket.socket, data: bytes) -> int:
    """
    How many bytes of *data* the broker takes, none of them later than a second after the others.
    """
    peer.settimeout(1)
    sent = 0
    with suppress(TimeoutError):
        while sent < len(data):
            sent += peer.send(data[sent : sent + 65536])
    return sent


def read_all(peer: socket.socket) -> None:
    with suppress(TimeoutError, ConnectionError):
        while peer.recv(65536):
            pass


def test_client_that_updates_keys_and_reads_nothing_is_not_read_from(tmp_path: Path) -> None:
    """
    It goes on once it reads.
    """
    certificates = Certificates(tmp_path)
    settings = {**certificates.settings(), "socket.send.buffer.bytes": "4096"}
    settings["socket.receive.buffer.bytes"] = "4096"
    with Barnabas(tmp_path / "broker", settings=settings, secured=["SSL"]) as broker:
        client = KeyUpdatingClient(
            broker.ports["SSL"],
            certificates.context(),
            tmp_path / "keys",
            buffer_bytes=4096,
        )
        data = client.key_updates(UPDATES)
        first = sent_by(client.socket, data)
        is_read = threading.Thread(target=read_all, args=[client.socket])
        is_read.start()
        second = sent_by(client.socket, data[first:])
        client.socket.shutdown(socket.SHUT_RDWR)
        is_read.join()
        client.socket.close()

    assert stated("tls-unread") == TLS_READ_BYTES
    assert first < len(data)
    assert first + second == len(data)
