"""
The broker as a process: how it ends, and what it refuses to do.
"""

from __future__ import annotations

import socket
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Message, Producer

from tests.interop.clients.base import PATIENCE, NewRecord
from tests.interop.clients.confluent import Confluent
from tests.support.broker_process import Barnabas, wait_for
from tests.support.commands import run

SOON = 15
"""
Seconds: three times what a stop may take, since the machine has something else to do as well.
"""


@pytest.fixture
def barnabas(tmp_path: Path) -> Iterator[Barnabas]:
    with Barnabas(tmp_path) as broker:
        yield broker


class Load:
    """
    A producer that does not wait, and remembers what was acknowledged.
    """

    def __init__(self, bootstrap: str) -> None:
        self.acknowledged: dict[int, bytes] = {}
        self._stop = threading.Event()
        settings = {"bootstrap.servers": bootstrap, "enable.idempotence": True, "log_level": 0}
        self._producer = Producer({**settings, "message.timeout.ms": 3000})
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        number = 0
        while not self._stop.is_set():
            try:
                value = b"%d" % number
                self._producer.produce("load", value, partition=0, on_delivery=self._delivered)
                number += 1
            except BufferError:
                pass
            self._producer.poll(0 if number % 100 else 0.001)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        offset, value = message.offset(), message.value()
        if error is None and offset is not None and isinstance(value, bytes):
            self.acknowledged[offset] = value

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()
        self._producer.flush(10)


def test_stop_under_load_is_clean_and_loses_nothing(barnabas: Barnabas) -> None:
    """
    SIGTERM while records come in: exit status 0, and soon, the marker of a clean stop is there,
    and what was acknowledged is read after the next start.
    """
    load = Load(barnabas.bootstrap)
    wait_for(lambda: len(load.acknowledged) > 1000, "the load to begin", PATIENCE)

    began = time.monotonic()
    status = barnabas.stop()
    took = time.monotonic() - began
    marker = (barnabas.data / ".kafka_cleanshutdown").exists()
    load.stop()
    barnabas.start()
    known = dict(load.acknowledged)
    read = Confluent().read(barnabas.bootstrap, "load", 1, max(known) + 1)

    assert 0 == status
    assert took < SOON
    assert marker
    assert known.items() <= {record.offset: record.value for record in read}.items()


def test_second_broker_on_the_same_directory_is_refused(barnabas: Barnabas) -> None:
    """
    It says so in a sentence that names the directory, and the first one is not disturbed.
    """
    serve = ("-m", "barnabas.server", "serve", "--set", "listeners=PLAINTEXT://127.0.0.1:0")

    second = run(sys.executable, *serve, "--data-dir", barnabas.data)

    assert 0 != second.returncode
    assert str(barnabas.data) in second.stdout + second.stderr
    assert "Traceback" not in second.stderr
    assert barnabas.is_ready()


def test_misspelled_option_is_refused_with_a_suggestion(tmp_path: Path) -> None:
    """
    Nothing is started and nothing is written.
    """
    serve = ("-m", "barnabas.server", "serve", "--data-dir", str(tmp_path / "data"))

    refused = run(sys.executable, *serve, "--set", "log.retention.msec=1")

    assert 0 != refused.returncode
    assert "log.retention.msec" in refused.stderr
    assert "log.retention.ms" in refused.stderr.replace("log.retention.msec", "")
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        ("HTTP", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        ("TLS", bytes.fromhex("16030100f1010000ed0303") + bytes(200)),
    ],
)
def test_bytes_of_another_protocol_are_recognized(
    barnabas: Barnabas, name: str, sent: bytes
) -> None:
    """
    The connection is closed, and one line of the log says what came instead, and from whom.
    """
    with socket.create_connection(("127.0.0.1", barnabas.port), timeout=PATIENCE) as connection:
        address = "{}:{}".format(*connection.getsockname())
        connection.sendall(sent)
        answer = connection.recv(1)

    assert b"" == answer
    wait_for(lambda: address in barnabas.log_text(), "the line in the log", PATIENCE)
    [line] = [line for line in barnabas.log_text().splitlines() if address in line]
    assert name in line


def test_data_of_an_ephemeral_broker_is_gone_after_the_stop(tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    client = Confluent()

    environment = {"TMPDIR": str(temporary)}
    with Barnabas(tmp_path, ephemeral=True, environment=environment) as broker:
        client.produce(broker.bootstrap, "topic", [NewRecord(b"value")], "none")
        [seen] = client.read(broker.bootstrap, "topic", 1, 1)
        status = broker.stop()

    assert b"value" == seen.value
    assert 0 == status
    assert [] == list(temporary.iterdir())
