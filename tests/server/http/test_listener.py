from __future__ import annotations

import asyncio
import socket
import sys
import threading
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from barnabas.server.http import extra
from barnabas.server.network.acceptor import CannotListen
from barnabas.server.readiness import BrokerState
from barnabas.storage.config.option_values import ConfigError
from barnabas.storage.log.log import Log
from barnabas.storage.manager.loading import LogLoading
from barnabas.testing.disks.memory import MemoryFiles
from barnabas.testing.manual_clock import ManualClock
from tests.support.commands import output_of
from tests.support.http_client import exchange, get
from tests.support.server import START_MS, TestBroker, broker_config, running, until

HTTP = {"barnabas_http_listener": "0"}

pytestmark = pytest.mark.broker(**HTTP)


async def test_serving_broker_is_healthy_and_ready(broker: TestBroker) -> None:
    health = await get(broker.http_port, "/healthz")
    ready = await get(broker.http_port, "/readyz")

    assert (200, {"status": "ok"}) == (health.status, health.json)
    assert (200, "ready", "RUNNING") == (ready.status, ready.json["status"], ready.json["state"])
    assert "127.0.0.1" == broker.http.address.host if broker.http else False


async def test_broker_without_the_option_has_no_http_listener() -> None:
    async with running() as broker:
        assert broker.http is None


def printed_by(program: str) -> str:
    """
    The output of a process of its own, where no other test has loaded modules.
    """
    return output_of(sys.executable, "-c", program, cwd=Path(__file__).parents[3]).strip()


def test_broker_without_the_option_imports_no_http_package() -> None:
    program = """
import asyncio, sys
from tests.support.server import running
async def main():
    async with running():
        http = {"uvicorn", "starlette", "h11", "prometheus_client", "barnabas.server.http"}
        print(sorted({*http, "barnabas.server.network.latencies"} & sys.modules.keys()))
asyncio.run(main())
"""
    assert "[]" == printed_by(program)


def test_api_is_imported_with_the_first_request() -> None:
    program = """
import asyncio, sys
from tests.support.server import running
from tests.support.commands import output_of
from tests.support.http_client import get
async def main():
    async with running(barnabas_http_listener="0") as broker:
        await get(broker.http_port, "/metrics")
        print("barnabas.server.http.api.app" in sys.modules)
        await asyncio.gather(*(get(broker.http_port, "/api/v1/cluster") for _ in range(3)))
        print("barnabas.server.http.api.app" in sys.modules)
asyncio.run(main())
"""
    assert "False\nTrue" == printed_by(program)


async def test_readiness_reports_how_many_logs_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    files = MemoryFiles()
    async with running(files) as broker:
        await broker.create("t", 5)
    may_load = threading.Semaphore(2)
    load = LogLoading._load

    def slowly(self: LogLoading, *place: Any) -> Log | None:
        may_load.acquire()
        return load(self, *place)

    monkeypatch.setattr(LogLoading, "_load", slowly)
    clock = ManualClock(START_MS)
    broker = TestBroker(broker_config(**HTTP), files=files, clock=clock)
    starting = asyncio.create_task(broker.start())
    try:
        await until(lambda: broker.log_manager and broker.log_manager.load_progress)
        await until(lambda: broker.logs.load_progress.done == 2)  # type: ignore[union-attr]
        clock.advance(4)

        ready = await get(broker.http_port, "/readyz")
        health = await get(broker.http_port, "/healthz")
        metrics = await get(broker.http_port, "/metrics")
    finally:
        may_load.release(100)
        await starting
        later = await get(broker.http_port, "/readyz")
        await broker.stop()

    assert 503 == ready.status
    assert {
        "status": "waiting",
        "state": "RECOVERY",
        "reason": "the broker waits for the logs",
        "seconds": 4.0,
        "logs_done": 2,
        "logs_left": 3,
        "seconds_left": 6.0,
    } == ready.json
    assert 200 == health.status
    assert "kafka_server_kafkaserver_brokerstate 2\n" in metrics.text
    assert 200 == later.status


async def test_broker_whose_directories_have_all_failed_is_unhealthy(broker: TestBroker) -> None:
    await broker.fail_directories()

    health = await get(broker.http_port, "/healthz")

    assert 503 == health.status
    assert "all log directories are offline" == health.json["reason"]
    assert ["/data"] == health.json["offline"]


async def test_http_listener_closes_last_during_a_stop(broker: TestBroker) -> None:
    """
    It frees its port.
    """
    port = broker.http_port
    stopping = asyncio.create_task(broker.stop())
    await until(lambda: broker.readiness.state is not BrokerState.RUNNING)
    said = await get(port, "/readyz")
    await stopping

    assert (503, "waiting") == (said.status, said.json["status"])
    assert BrokerState.NOT_RUNNING is broker.readiness.state
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", port)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [("localhost:", "barnabas.http.listener: localhost:: an address looks like 127.0.0.1:8099")],
)
async def test_invalid_http_address_aborts_the_start(text: str, sentence: str) -> None:
    broker = TestBroker(broker_config(barnabas_http_listener=text), files=MemoryFiles())
    with pytest.raises(ConfigError, match=sentence):
        await broker.start()
    await broker.stop()


async def test_missing_http_extra_aborts_the_start_with_its_install_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        extra, "find_spec", lambda name: None if name == "prometheus_client" else find_spec(name)
    )
    broker = TestBroker(broker_config(**HTTP), files=MemoryFiles())
    with pytest.raises(
        ConfigError, match=r"prometheus_client cannot be found: pip install 'barnabas\[http\]'"
    ):
        await broker.start()
    await broker.stop()


async def test_http_port_in_use_aborts_the_start() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        broker = TestBroker(broker_config(barnabas_http_listener=str(port)), files=MemoryFiles())
        with pytest.raises(
            CannotListen, match=f"cannot listen on http://127.0.0.1:{port}"
        ) as failed:
            await broker.start()
        await broker.stop()
    assert str(failed.value).endswith(
        ": Address already in use; end the program that has the port, or name another address in"
        " barnabas.http.listener"
    )


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("127.0.0.1:9644", 200),
        ("[::1]:9644", 200),
        ("advertised.example", 200),
        (socket.gethostname(), 200),
        ("metrics.example:80", 200),
        ("evil.example", 403),
        ("", 403),
    ],
)
async def test_only_known_host_headers_are_accepted(host: str, status: int) -> None:
    options = {
        "advertised_listeners": "PLAINTEXT://advertised.example:9092",
        "barnabas_http_hosts": "metrics.example",
    }
    async with running(**HTTP, **options) as broker:
        assert status == (await get(broker.http_port, "/healthz", host=host)).status


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        ("POST /healthz HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n{}", 405),
        ("DELETE /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n", 405),
        ("BREW /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n", 405),
        ("GET /healthz HTTP/1.1\r\nhost: localhost\r\ncontent-length: 3\r\n\r\nabc", 413),
        ("GET /healthz HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n", 413),
        ("GET /../../etc/passwd HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n", 404),
        ("GET /%2e%2e/metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n", 404),
        ("GET http://evil/metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n", 404),
        ("GET / HTTP/9.9\r\n\r\n", 403),
        ("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
    ],
)
async def test_http_server_refuses_other_methods_and_bodies(
    broker: TestBroker, request_: str, status: int
) -> None:
    """
    Each refusal closes the connection, so that a body is not taken for a request.
    """
    answer = await exchange(broker.http_port, request_.encode("latin-1"))

    assert f"HTTP/1.1 {status} ".encode() == answer[: len("HTTP/1.1 404 ")]
    assert b"connection: close" in answer.lower()


async def test_every_response_has_its_content_type(broker: TestBroker) -> None:
    for path in ("/", "/healthz", "/metrics", "/nothing"):
        answer = await get(broker.http_port, path)
        assert "nosniff" == answer.headers["x-content-type-options"]
        assert "no-store" == answer.headers["cache-control"]


async def test_root_lists_all_paths(broker: TestBroker) -> None:
    listed = (await get(broker.http_port, "/")).json
    found = [(await get(broker.http_port, each["path"], "HEAD")).status for each in listed]

    assert ["/", "/healthz", "/readyz", "/metrics", "/api/v1/"] == [each["path"] for each in listed]
    assert 5 * [200] == found
