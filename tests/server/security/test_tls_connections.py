from __future__ import annotations

import asyncio
import os
import re
import socket
import ssl
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Self, cast

import pytest
from confluent_kafka import Consumer, Producer

from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.protocol.messages.create_topics import CreateTopicsRequest
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.server.config import BrokerConfig, Listener
from barnabas.server.metrics import Metrics
from barnabas.server.network.acceptor import protocol_of
from barnabas.server.network.registry import Connections
from barnabas.server.security.listeners import Security
from barnabas.server.tools.healthcheck import check
from barnabas.testing.manual_clock import ManualClock
from tests.support.broker_process import Barnabas, wait_for
from tests.support.certificates import Certificates
from tests.support.config_requests import BROKER, SET, change
from tests.support.limits import stated
from tests.support.sasl_client import CLOSED, SaslClient
from tests.support.topic_requests import creatable
from tests.support.wire_client import WireClient, request_frame

SECRET: Final = b"the treasure is under the old oak"
VERSIONS: Final = ApiVersionsRequest(client_software_name="t", client_software_version="1")
PLAIN_USERS: Final = (
    'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="wonderland";'
)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def broker(
    certificates: Certificates, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Barnabas]:
    with Barnabas(
        tmp_path_factory.mktemp("broker"),
        settings={
            **certificates.settings(),
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl_ssl.plain.sasl.jaas.config": PLAIN_USERS,
            "listener.name.ssl.ssl.client.auth": "requested",
            "listener.name.ssl.ssl.principal.mapping.rules": "RULE:^CN=(nobody)$/$1/,"
            "RULE:^CN=alice,.*$/alice/",
        },
        secured=["SSL", "SASL_SSL"],
    ) as broker:
        yield broker


class Tls(SaslClient):
    def __init__(
        self, broker: Barnabas, context: ssl.SSLContext, protocol: str = "SSL", **options: Any
    ) -> None:
        super().__init__(
            broker.ports[protocol],
            lambda plain: context.wrap_socket(plain, server_hostname="localhost"),
            **options,
        )


def last_line(broker: Barnabas, pattern: str) -> str:
    found: list[str] = []

    def look() -> bool:
        found[:] = [line for line in broker.log_text().splitlines() if re.search(pattern, line)]
        return bool(found)

    wait_for(look, f"a line with {pattern}", 10)
    return found[-1]


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_requests_work_over_both_tls_versions(
    broker: Barnabas, certificates: Certificates, version: ssl.TLSVersion
) -> None:
    with Tls(broker, certificates.context(version=version)) as client:
        assert 0 == client.ask(VERSIONS, 3).error_code
        (node,) = client.ask(MetadataRequest(topics=[]), 12).brokers
        assert broker.ports["SSL"] == node.port, "the endpoint of the listener that was asked"


@pytest.mark.parametrize(
    ("listener", "data", "reason"),
    [
        ("SSL", request_frame(VERSIONS, 3), "does not speak TLS, and the listener SSL does"),
        ("SSL", b"GET / HTTP/1.1\r\n\r\n", "HTTP request on the listener SSL"),
        ("SSL", b"\x16\x03\x01\x00\x05hello", "TLS handshake failed"),
        ("SASL_SSL", b"\0" * 100, "does not speak TLS, and the listener SASL_SSL does"),
        ("PLAINTEXT", b"\x16\x03\x01\x02\x00" + b"x" * 600, "listener that does not speak TLS"),
        ("PLAINTEXT", b"GET / HTTP/1.1\r\n\r\n", "an HTTP request on a listener"),
    ],
)
def test_peer_of_another_protocol_is_logged(
    broker: Barnabas, listener: str, data: bytes, reason: str
) -> None:
    port = {"PLAINTEXT": broker.port, **broker.ports}[listener]
    with socket.create_connection(("127.0.0.1", port), timeout=10) as peer:
        peer.sendall(data)
        answer = b""
        with suppress(ConnectionError):
            while more := peer.recv(1000):
                answer += more

    assert listener == "PLAINTEXT" or answer[:1] in (b"", b"\x15"), "nothing, or an alert of TLS"
    assert reason in last_line(broker, reason)


def test_client_that_does_not_trust_the_broker_is_logged(broker: Barnabas) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        Tls(broker, ssl.create_default_context())

    assert "does not trust the certificate of the listener SSL" in last_line(broker, "not trust")


def test_certificate_of_an_unknown_authority_is_refused(
    broker: Barnabas, certificates: Certificates, tmp_path: Path
) -> None:
    others = Certificates(tmp_path).client("alice")

    with Tls(broker, certificates.context(others)) as client:
        assert CLOSED == _asked(client)

    assert "its certificate is refused" in last_line(broker, "certificate is refused")


def test_certificate_without_a_mapping_rule_is_refused(
    broker: Barnabas, certificates: Certificates
) -> None:
    with Tls(broker, certificates.context(certificates.client("alice"))) as client:
        assert 0 == client.ask(VERSIONS, 3).error_code
    with Tls(broker, certificates.context(certificates.client("mallory"))) as client:
        assert CLOSED == _asked(client)

    assert "no rule of ssl.principal.mapping.rules" in last_line(broker, "no rule of")


def _asked(client: SaslClient) -> Any:
    """
    With TLS 1.3 a client learns of its refusal when it reads.
    """
    try:
        return client.ask(VERSIONS, 3)
    except (ssl.SSLError, OSError):
        return CLOSED


def test_sasl_plain_works_over_tls(broker: Barnabas, certificates: Certificates) -> None:
    with Tls(broker, certificates.context(), "SASL_SSL") as client:
        assert CLOSED == client.ask(MetadataRequest(topics=[]), 8)
    with Tls(broker, certificates.context(), "SASL_SSL") as client:
        assert 0 == client.handshake("PLAIN")[0]
        assert 0 == client.authenticate(b"\0alice\0wonderland")[0]
        assert client.ask(MetadataRequest(topics=[]), 8).brokers


def test_nothing_is_sent_unencrypted_over_tls(broker: Barnabas, certificates: Certificates) -> None:
    """
    Neither small responses nor large ones, which a plain listener sends from the page cache without
    the transport.
    """
    with SaslClient(broker.port) as client:
        topic = creatable("secrets")
        client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=9000), 2)
    tap = Tap(broker.ports["SSL"])
    settings = {
        "bootstrap.servers": f"127.0.0.1:{broker.ports['SSL']}",
        "security.protocol": "SSL",
        "ssl.ca.location": str(certificates.ca),
    }
    try:
        producer = Producer(settings)
        for number in range(300):
            producer.produce("secrets", SECRET * (1 + number % 300), partition=0)
        assert 0 == producer.flush(30)
        with Tls(tap, certificates.context()) as client:  # type: ignore[arg-type]  # it has ports
            fetched = fetch_all(client)
    finally:
        tap.close()
    consumer = Consumer({**settings, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["secrets"])
    read: list[bytes | None] = []
    while len(read) < 300:
        message = consumer.poll(20)
        assert message is not None
        read.append(message.value())
    consumer.close()

    assert [SECRET * (1 + number % 300) for number in range(300)] == read
    assert SECRET in fetched
    assert tap.seen > len(fetched)
    assert SECRET not in tap.data


def fetch_all(client: SaslClient) -> bytes:
    fetched, offset = b"", 0
    while True:
        partition = FetchPartition(
            partition=0, fetch_offset=offset, partition_max_bytes=1 << 20, log_start_offset=-1
        )
        request = FetchRequest(
            replica_id=-1,
            max_wait_ms=0,
            min_bytes=1,
            max_bytes=1 << 20,
            topics=[FetchTopic(topic="secrets", partitions=[partition])],
        )
        (answered,) = client.ask(request, 4).responses[0].partitions
        records = bytes(answered.records or b"")
        if not records:
            return fetched
        fetched += records
        at = 0
        while at + 61 <= len(records):
            size = int.from_bytes(records[at + 8 : at + 12]) + 12
            if at + size > len(records):
                break
            base, delta = (
                int.from_bytes(records[at : at + 8]),
                int.from_bytes(records[at + 23 : at + 27]),
            )
            offset = base + delta + 1
            at += size


class Tap:
    def __init__(self, port: int) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.ports = {"SSL": self._listening.getsockname()[1]}
        self._port = port
        self.data = bytearray()
        self._sockets = [self._listening]
        self._threads = [threading.Thread(target=self._serve, daemon=True)]
        self._threads[0].start()

    @property
    def seen(self) -> int:
        return len(self.data)

    def _serve(self) -> None:
        with suppress(OSError):
            near, _ = self._listening.accept()
            far = socket.create_connection(("127.0.0.1", self._port))
            self._sockets += [near, far]
            for source, target in ((near, far), (far, near)):
                thread = threading.Thread(target=self._pass, args=(source, target), daemon=True)
                self._threads.append(thread)
                thread.start()

    def _pass(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                self.data += data
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        for thread in self._threads:
            thread.join(10)
        for each in self._sockets:
            each.close()


def test_requests_of_a_tls_peer_that_does_not_read_are_not_received(
    broker: Barnabas, certificates: Certificates
) -> None:
    most = 4_000
    with Tls(broker, certificates.context(), receive_buffer_bytes=4096, seconds=2) as client:
        client.client_id = "c" * 4000
        sent, rest = 0, b""
        try:
            while sent < most:
                rest = rest or client.frame(VERSIONS, 3)
                rest = rest[client.socket.send(rest) :]
                sent += not rest
        except TimeoutError:
            # The broker reads nothing more: it has answers that nobody reads.
            pass
        else:
            pytest.fail(f"the broker has read {sent} requests of a peer that reads no answer")
        for _ in range(sent):
            client.receive_frame()
        client.send_bytes(rest)
        client.receive_frame()


async def test_tls_requests_may_arrive_in_any_pieces(
    broker: Barnabas, certificates: Certificates
) -> None:
    async with await open_tls(broker, certificates) as client:
        for size in (1, 2, 3, 7, 30):
            frame = client.frame(VERSIONS, 3)
            for at in range(0, len(frame), size):
                client.send_bytes(frame[at : at + size])
                await client.drain()
                await asyncio.sleep(0)
            assert 0 == (await client.receive()).error_code


async def open_tls(
    broker: Barnabas, certificates: Certificates, limit: int = 1 << 26
) -> WireClient:
    return await WireClient.open(
        broker.ports["SSL"], limit=limit, ssl=certificates.context(), server_hostname="localhost"
    )


def test_broker_sends_close_notify(broker: Barnabas, certificates: Certificates) -> None:
    context = certificates.context()
    with Tls(broker, context) as client:
        client.socket.suppress_ragged_eofs = False
        client.ask(VERSIONS, 3)
        client.socket.sendall(b"\xff\xff\xff\xff")

        assert b"" == client.socket.recv(1)


def test_peers_that_never_finish_a_handshake_cost_little(
    broker: Barnabas, certificates: Certificates
) -> None:
    def resident() -> int:
        pages = Path(f"/proc/{broker.pid}/statm").read_text().split()[1]
        return int(pages) * 4096

    hello = client_hello(certificates)
    before = resident()
    peers = [socket.create_connection(("127.0.0.1", broker.ports["SSL"])) for _ in range(1000)]
    try:
        for number, peer in enumerate(peers):
            if number % 2:
                peer.sendall(hello if number % 4 == 1 else hello[:100])
        with Tls(broker, certificates.context()) as client:
            assert 0 == client.ask(VERSIONS, 3).error_code
        assert resident() - before < 64 * 1024 * 1024
    finally:
        for peer in peers:
            peer.close()


def client_hello(certificates: Certificates) -> bytes:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = certificates.context().wrap_bio(incoming, outgoing, server_hostname="localhost")
    with suppress(ssl.SSLWantReadError):
        tls.do_handshake()
    return outgoing.read()


def alter(broker: Barnabas, **options: str) -> tuple[int, str | None]:
    """
    Set options of the running broker, and return the error code and message.
    """
    request = change(BROKER, "1", *((name, SET, value) for name, value in options.items()))
    with SaslClient(broker.port) as client:
        (answered,) = client.ask(request, 1).responses
    return answered.error_code, answered.error_message


def serial(broker: Barnabas, certificates: Certificates) -> object:
    with Tls(broker, certificates.context(), "SASL_SSL") as client:
        return client.socket.getpeercert()["serialNumber"]


class Alone:
    """
    A TLS listener without a broker behind it, and with a clock that a test moves.
    """

    def __init__(self, certificates: Certificates, **options: Any) -> None:
        listener = Listener("SSL", "127.0.0.1", 0, "127.0.0.1", 0, "SSL")
        self.clock, self._pool = ManualClock(), ThreadPoolExecutor(1)
        security = Security([listener], lambda _mechanism, _user: None, self.clock)
        security.configure(certificates.settings())
        self.connections = Connections(
            BrokerConfig(**options),
            self.clock,
            self._pool,
            cast(Any, None),
            Metrics(),
            security=security,
        )
        self._protocol = protocol_of(self.connections, listener)
        self._writers: list[asyncio.StreamWriter] = []

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._protocol, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def open(self, **options: Any) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """
        Open a client connection; with ``ssl`` it completes the handshake.
        """
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, **options)
        self._writers.append(writer)
        return reader, writer

    async def __aexit__(self, *_: object) -> None:
        for writer in self._writers:
            writer.close()
            with suppress(ConnectionError, ssl.SSLError):
                await writer.wait_closed()
        self._server.close()
        await self.connections.drain(1)
        self._pool.shutdown()


async def test_handshake_has_a_timeout(certificates: Certificates) -> None:
    async with Alone(certificates) as alone:
        reader, writer = await alone.open()
        await alone.open(ssl=certificates.context(), server_hostname="localhost")
        writer.write(client_hello(certificates)[:100])
        await asyncio.sleep(0.2)
        assert 2 == len(alone.connections)

        alone.clock.advance(stated("tls-handshake") - 0.1)
        await asyncio.sleep(0.1)
        assert 2 == len(alone.connections)
        alone.clock.advance(0.2)

        with suppress(ConnectionError):
            assert b"" == await asyncio.wait_for(reader.read(1), 10)
        assert 1 == len(alone.connections), "a client that has shaken hands stays"


async def test_damaged_bytes_behind_a_handshake_close_the_connection(
    certificates: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    async with Alone(certificates) as alone:
        context = certificates.context()
        # Its handshake ends on the client's side, and so on both.
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        reader, writer = await alone.open(ssl=context, server_hostname="localhost")
        os.write(writer.get_extra_info("socket").fileno(), b"\x17\x03\x03\x00\x20" + bytes(32))

        with suppress(ConnectionError, ssl.SSLError):
            assert b"" == await asyncio.wait_for(reader.read(1), 10)
        assert 0 == len(alone.connections)
    assert "TLS cannot be read: " in caplog.text


async def test_connection_beyond_the_limit_may_wait_before_its_handshake(
    certificates: Certificates,
) -> None:
    async with Alone(certificates, max_connections=1) as alone:
        _, first = await alone.open()
        shaking = asyncio.create_task(
            alone.open(ssl=certificates.context(), server_hostname="localhost")
        )
        await asyncio.sleep(0.2)
        alone.clock.advance(3 * stated("tls-handshake"))
        await asyncio.sleep(0.1)
        assert not shaking.done()

        first.close()

        await asyncio.wait_for(shaking, 10)
        assert 1 == len(alone.connections)


def test_keystore_is_replaced_while_connections_stay(
    broker: Barnabas, certificates: Certificates, tmp_path: Path
) -> None:
    option = "listener.name.sasl_ssl.ssl.keystore.location"
    first = serial(broker, certificates)
    with Tls(broker, certificates.context(), "SASL_SSL") as old:
        assert 0 == old.ask(VERSIONS, 3).error_code
        bad = tmp_path / "bad.pem"
        bad.write_text("nothing")
        code, message = alter(broker, **{option: str(bad)})
        assert (42, first) == (code, serial(broker, certificates))
        assert "bad.pem: it has 0 private keys" in str(message)

        renewed = certificates.issue("renewed", "localhost", "127.0.0.1")
        assert (0, None) == alter(broker, **{option: str(renewed)})
        assert first != serial(broker, certificates)
        assert 0 == old.handshake("PLAIN")[0], "a connection from before goes on"

        replaced = serial(broker, certificates)
        certificates.issue("renewed", "localhost", "127.0.0.1", common_name="other")
        code, message = alter(broker, **{option: str(renewed)})
        assert (42, replaced) == (code, serial(broker, certificates))
        assert "SASL_SSL: the certificate is for" in str(message)
        certificates.issue("renewed", "localhost", "127.0.0.1")
        assert (0, None) == alter(broker, **{option: str(renewed)})
        assert replaced != serial(broker, certificates), "the file is read again"

    broker.restart()
    assert first != serial(broker, certificates), "it is stored"


@pytest.mark.parametrize(
    ("location", "reason"),
    [
        ("/dev/zero", "it is no regular file"),
        ("pipe", "it is no regular file"),
        ("huge", "it has more than 4 MiB"),
        (".", "Is a directory"),
    ],
)
def test_keystore_that_is_slow_to_read_blocks_nobody(
    broker: Barnabas, tmp_path: Path, location: str, reason: str
) -> None:
    os.mkfifo(tmp_path / "pipe")
    with (tmp_path / "huge").open("wb") as huge:
        huge.truncate(1 << 40)

    option = "listener.name.sasl_ssl.ssl.keystore.location"
    code, message = alter(broker, **{option: str(tmp_path / location)})

    assert 42 == code
    assert reason in str(message)


def test_clients_cannot_make_a_running_broker_fetch_keys(broker: Barnabas) -> None:
    """
    Nor does the broker take options of listeners that it reads at the start only.
    """
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/keys"
        prefix = "listener.name.sasl_ssl."
        code, _ = alter(
            broker,
            **{
                f"{prefix}oauthbearer.sasl.oauthbearer.jwks.endpoint.url": url,
                f"{prefix}ssl.principal.mapping.rules": "RULE:(a+)+$/x/",
            },
        )
        silent.settimeout(0.5)
        with pytest.raises(TimeoutError):
            silent.accept()
    assert 0 == code


def test_sasl_mechanism_is_added_while_the_broker_runs(
    broker: Barnabas, certificates: Certificates
) -> None:
    with Tls(broker, certificates.context(), "SASL_SSL") as client:
        assert 33 == client.handshake("SCRAM-SHA-512")[0]

    assert 42 == alter(broker, **{"sasl.enabled.mechanisms": "KERBEROS"})[0]
    assert 0 == alter(broker, **{"sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512"})[0]

    with Tls(broker, certificates.context(), "SASL_SSL") as client:
        assert (0, ["PLAIN", "SCRAM-SHA-512"]) == client.handshake("SCRAM-SHA-512")


def test_health_check_works_over_tls(broker: Barnabas) -> None:
    port = broker.ports["SASL_SSL"]

    assert check("127.0.0.1", port, 5, has_tls=True) is None
    assert check("127.0.0.1", port, 5) is not None


def test_missing_keystore_aborts_the_start(tmp_path: Path) -> None:
    broker = Barnabas(
        tmp_path,
        settings={"ssl.keystore.type": "PEM", "ssl.keystore.location": "/nowhere.pem"},
        secured=["SSL"],
    )

    with pytest.raises(AssertionError, match="ended at once"):
        broker.start()

    assert (
        "listener SSL: ssl.keystore.location: /nowhere.pem cannot be read: No such file"
        in broker.log_text()
    )
