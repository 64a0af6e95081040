"""
A broker that ends because of an error says so before it stops.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import subprocess
from pathlib import Path

import pytest

from barnabas.server.network.acceptor import CannotListen
from barnabas.storage.errors import KafkaStorageError
from barnabas.testing import Broker
from barnabas.testing.disks.failing import FailingFiles
from barnabas.testing.manual_clock import ManualClock
from tests.support.commands import BARNABAS, run
from tests.support.server import START_MS, TestBroker, broker_config, until


def serve(directory: Path, listeners: str) -> subprocess.CompletedProcess[str]:
    return run(*BARNABAS, "serve", "--data-dir", directory, "--set", f"listeners={listeners}")


def test_failed_start_gives_its_reason_once_and_before_it_stops(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ended = serve(tmp_path / "data", f"PLAINTEXT://127.0.0.1:{taken.getsockname()[1]}")

    assert 1 == ended.returncode
    assert 1 == ended.stderr.count("the broker ends: cannot listen on")
    assert ended.stderr.index("the broker ends") < ended.stderr.index("stopped in")


@pytest.mark.parametrize(
    ("number", "remedy"),
    [
        (errno.EADDRINUSE, "end the program that has the port, or name another address in x"),
        (errno.EADDRNOTAVAIL, "give this machine the address, or name another address in x"),
        (errno.EACCES, "run as a user who may use ports below 1024, or name another address in x"),
        (errno.EAFNOSUPPORT, "name another address in x"),
    ],
)
def test_address_that_cannot_be_used_has_a_remedy(number: int, remedy: str) -> None:
    error = OSError(number, f"{os.strerror(number)} (while attempting to bind on Address())")
    sentence = str(CannotListen("PLAINTEXT://a:9092", error, "x"))

    assert sentence.endswith(f"; {remedy}")
    assert "(" not in sentence


def test_locked_directory_is_reported_with_its_process_and_a_remedy(tmp_path: Path) -> None:
    with Broker(tmp_path / "data"):
        ended = serve(tmp_path / "data", "PLAINTEXT://127.0.0.1:0")

    assert 1 == ended.returncode
    assert f"is using this directory. It is process {os.getpid()}. Stop it first" in ended.stderr


async def test_broker_that_fails_gives_the_reason_before_it_stops() -> None:
    files = FailingFiles()
    broker = TestBroker(broker_config(), files=files, clock=ManualClock(START_MS))
    states: list[str] = []

    def failed(error: Exception) -> None:
        states.append(f"{type(error).__name__} while {broker.readiness.state.name}")

    ended = asyncio.create_task(broker.run(asyncio.Event(), failed=failed))
    await until(lambda: broker.connections is not None)
    broker.background.fail(KafkaStorageError("the last directory has failed"))

    with pytest.raises(KafkaStorageError):
        await ended
    assert ["KafkaStorageError while RUNNING"] == states
