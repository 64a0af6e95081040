from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from barnabas.protocol.codec.codec import encode
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_versions import ApiVersionsResponse
from barnabas.server.cli import main
from barnabas.server.tools.healthcheck import (
    BadBrokerAddress,
    address_of,
    check,
    configured_address,
)


@contextmanager
def answering(answer: Callable[[bytes], bytes]) -> Iterator[int]:
    """
    A server that sends one *answer* and closes; yields its port.
    """
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall(answer(connection.recv(1000)))

        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()[1]
        thread.join()


def respond(error: ErrorCode) -> Callable[[bytes], bytes]:
    def answer(request: bytes) -> bytes:
        _, api_key, version, correlation_id = struct.unpack_from(">ihhi", request)
        assert (18, 0) == (api_key, version)
        body = encode(ApiVersionsResponse(error_code=error, api_keys=[]), version)
        return struct.pack(">ii", 4 + len(body), correlation_id) + body

    return answer


def test_health_check_of_an_answering_broker_succeeds() -> None:
    with answering(respond(ErrorCode.NONE)) as port:
        assert check("127.0.0.1", port, 10) is None
    with answering(respond(ErrorCode.NONE)) as port:
        assert 0 == main(["healthcheck", "--bootstrap-server", f"127.0.0.1:{port}"])


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (respond(ErrorCode.UNKNOWN_SERVER_ERROR), "error -1"),
        (lambda _: b"HTTP/1.1 400 Bad Request\r\n\r\n", "no Kafka broker"),
        (lambda _: b"", "closed"),
        (lambda _: struct.pack(">ii", 6, 1) + b"\xff\xff", ""),
    ],
)
def test_health_check_of_anything_else_fails(
    answer: Callable[[bytes], bytes], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with answering(answer) as port:
        failure = check("127.0.0.1", port, 10)

    assert failure is not None
    assert said in failure


def test_health_check_of_a_closed_port_fails(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

    assert 1 == main(["healthcheck", "--bootstrap-server", f"127.0.0.1:{port}"])
    assert f"127.0.0.1:{port}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("broker:19092", ("broker", 19092)),
        (":19092", ("127.0.0.1", 19092)),
        ("[::1]:19092", ("::1", 19092)),
    ],
)
def test_address_is_host_and_port(text: str, address: tuple[str, int]) -> None:
    assert address == address_of(text)


@pytest.mark.parametrize("text", ["broker", "broker:", "broker:kafka", ""])
def test_invalid_address_is_a_usage_error(text: str) -> None:
    with pytest.raises(BadBrokerAddress):
        address_of(text)
    assert 2 == main(["healthcheck", "--bootstrap-server", text])


@pytest.mark.parametrize(
    ("listeners", "address"),
    [
        ("PLAINTEXT://0.0.0.0:9092", ("127.0.0.1", 9092, False)),
        ("PLAINTEXT://[::]:9092", ("::1", 9092, False)),
        ("PLAINTEXT://:9093", ("127.0.0.1", 9093, False)),
        ("PLAINTEXT://10.0.0.7:9092", ("10.0.0.7", 9092, False)),
        ("CONTROLLER://0.0.0.0:9093,PLAINTEXT://0.0.0.0:9094", ("127.0.0.1", 9094, False)),
    ],
)
def test_health_check_uses_the_configured_listener(
    tmp_path: Path, listeners: str, address: tuple[str, int, bool]
) -> None:
    file = tmp_path / "server.properties"
    file.write_text("listeners=PLAINTEXT://127.0.0.1:1\nadvertised.listeners=PLAINTEXT://far:2\n")

    assert ("127.0.0.1", 1, False) == configured_address(file, {})
    assert address == configured_address(None, {"KAFKA_LISTENERS": listeners})
    assert address == configured_address(file, {"KAFKA_LISTENERS": listeners})


def test_health_check_ignores_advertised_addresses(tmp_path: Path) -> None:
    """
    A container's script passes the advertised listeners to the broker only.
    """
    file = tmp_path / "server.properties"
    file.write_text("advertised.listeners=PLAINTEXT://far:2\n")
    environment = {
        "KAFKA_LISTENERS": "OUTSIDE://0.0.0.0:9093",
        "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "OUTSIDE:PLAINTEXT",
    }

    assert ("127.0.0.1", 9093, False) == configured_address(file, environment)


def test_health_check_prefers_a_listener_without_tls() -> None:
    both = "SSL://127.0.0.1:1,SASL_PLAINTEXT://127.0.0.1:2"

    assert ("127.0.0.1", 2, False) == configured_address(None, {"KAFKA_LISTENERS": both})
    one = {"KAFKA_LISTENERS": "SASL_SSL://127.0.0.1:3"}
    assert ("127.0.0.1", 3, True) == configured_address(None, one)
