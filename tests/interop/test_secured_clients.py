"""
Clients in four languages on listeners with TLS, by every mechanism that they have.
"""

from __future__ import annotations

import asyncio
import gc
import ssl
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import aiokafka  # type: ignore[import-untyped]  # the library has no type hints
import kafka  # type: ignore[import-untyped]  # the library has no type hints
import pytest
from aiokafka.errors import KafkaError as AioKafkaError  # type: ignore[import-untyped]
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from cryptography.hazmat.primitives import serialization

from tests.interop.conftest import needs_program
from tests.interop.test_other_languages import node_clients
from tests.support.broker_process import Barnabas
from tests.support.certificates import Certificates
from tests.support.java_programs import run_program
from tests.support.sasl_client import add_scram_user

__all__ = ["node_clients"]

# Clients that are refused leave sockets behind.
pytestmark = [pytest.mark.filterwarnings("ignore::ResourceWarning"), pytest.mark.prove]

HERE: Final = Path(__file__).parent
PATIENCE: Final = 60
RECORDS: Final = 10
PASSWORD: Final = 'p=w, "1"'
USERS: Final = (
    'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="p=w, \\"1\\"";'
)
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


class Login(NamedTuple):
    """
    How a client shows who it is.
    """

    bootstrap: str
    authority: Path
    topic: str
    mechanism: str | None = None
    password: str = PASSWORD
    certificate: Path | None = None

    @property
    def protocol(self) -> str:
        return "SSL" if self.mechanism is None else "SASL_SSL"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module", params=["TLSv1.2", "TLSv1.3"])
def secured(
    certificates: Certificates,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Iterator[Barnabas]:
    with Barnabas(
        tmp_path_factory.mktemp("broker"),
        settings={
            **certificates.settings(),
            "ssl.enabled.protocols": request.param,
            "sasl.enabled.mechanisms": ",".join(MECHANISMS),
            "listener.name.sasl_ssl.plain.sasl.jaas.config": USERS,
            "listener.name.ssl.ssl.client.auth": "required",
            "connections.max.reauth.ms": "60000",
        },
        secured=["SSL", "SASL_SSL"],
    ) as broker:
        add_scram_user(broker.port, "alice", PASSWORD)
        yield broker


@pytest.fixture
def login(
    secured: Barnabas, certificates: Certificates, request: pytest.FixtureRequest
) -> Callable[..., Login]:
    def make(mechanism: str | None, password: str = PASSWORD) -> Login:
        port = secured.ports["SSL" if mechanism is None else "SASL_SSL"]
        name = f"t-{abs(hash((request.node.name, mechanism, password)))}"
        certificate = certificates.client("alice") if mechanism is None else None
        return Login(f"127.0.0.1:{port}", certificates.ca, name, mechanism, password, certificate)

    return make


def librdkafka(login: Login) -> str:
    settings = {
        "bootstrap.servers": login.bootstrap,
        "security.protocol": login.protocol,
        "ssl.ca.location": str(login.authority),
        "message.timeout.ms": 3000,
    }
    if login.mechanism is not None:
        settings |= {
            "sasl.mechanism": login.mechanism,
            "sasl.username": "alice",
            "sasl.password": login.password,
        }
    if login.certificate is not None:
        settings["ssl.certificate.location"] = settings["ssl.key.location"] = str(login.certificate)
    sent = [f"{login.topic}{n}".encode() for n in range(RECORDS)]
    producer = Producer(settings)
    for value in sent:
        producer.produce(login.topic, value, partition=0)
    producer.flush(PATIENCE)
    if not _is_connected(producer):
        return "refused"
    del settings["message.timeout.ms"]
    consumer = Consumer({**settings, "group.id": login.topic})
    consumer.assign([TopicPartition(login.topic, 0, 0)])
    read: list[bytes | None] = []
    while len(read) < RECORDS:
        message = consumer.poll(PATIENCE)
        assert message is not None
        read.append(message.value())
    consumer.close()
    return "ok" if sent == read else f"read {read}"


def _is_connected(producer: Producer) -> bool:
    try:
        return len(producer.list_topics(timeout=3).brokers) > 0
    except KafkaException:
        return False


def kafka_python(login: Login) -> str:
    settings = {
        "bootstrap_servers": login.bootstrap,
        "security_protocol": login.protocol,
        "ssl_cafile": str(login.authority),
    }
    if login.mechanism is not None:
        settings |= {
            "sasl_mechanism": login.mechanism,
            "sasl_plain_username": "alice",
            "sasl_plain_password": login.password,
        }
    if login.certificate is not None:
        settings["ssl_certfile"] = settings["ssl_keyfile"] = str(login.certificate)
    sent = [f"{login.topic}{n}".encode() for n in range(RECORDS)]
    try:
        with kafka.KafkaProducer(**settings, bootstrap_timeout_ms=3000) as producer:
            for value in sent:
                producer.send(login.topic, value, partition=0).get(PATIENCE)
    except kafka.errors.KafkaError:
        return "refused"
    consumer = kafka.KafkaConsumer(**settings, auto_offset_reset="earliest")
    consumer.assign([kafka.TopicPartition(login.topic, 0)])
    read = [next(consumer).value for _ in range(RECORDS)]
    consumer.close()
    return "ok" if sent == read else f"read {read}"


def aio_kafka(login: Login) -> str:
    return asyncio.run(_aio_kafka(login))


async def _aio_kafka(login: Login) -> str:
    context = ssl.create_default_context(cafile=login.authority)
    if login.certificate is not None:
        context.load_cert_chain(login.certificate)
    settings = {
        "bootstrap_servers": login.bootstrap,
        "security_protocol": login.protocol,
        "ssl_context": context,
    }
    if login.mechanism is not None:
        settings |= {
            "sasl_mechanism": login.mechanism,
            "sasl_plain_username": "alice",
            "sasl_plain_password": login.password,
        }
    sent = [f"{login.topic}{n}".encode() for n in range(RECORDS)]
    producer = aiokafka.AIOKafkaProducer(**settings)
    try:
        await producer.start()
        for value in sent:
            await producer.send_and_wait(login.topic, value, partition=0)
    except AioKafkaError:
        # It leaves connections open, which the broker closes a moment later.
        await asyncio.sleep(0.5)
        return "refused"
    finally:
        await producer.stop()
    consumer = aiokafka.AIOKafkaConsumer(**settings, auto_offset_reset="earliest")
    await consumer.start()
    consumer.assign([aiokafka.TopicPartition(login.topic, 0)])
    read = [(await consumer.getone()).value for _ in range(RECORDS)]
    await consumer.stop()
    return "ok" if sent == read else f"read {read}"


PYTHON: Final = (librdkafka, kafka_python, aio_kafka)


@pytest.mark.parametrize("client", PYTHON)
@pytest.mark.parametrize("mechanism", [None, *MECHANISMS])
def test_python_client_connects_securely(
    login: Callable[..., Login], client: Callable[[Login], str], mechanism: str | None
) -> None:
    assert "ok" == client(login(mechanism))


@pytest.mark.parametrize("client", PYTHON)
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_wrong_password_is_refused(
    login: Callable[..., Login], client: Callable[[Login], str], mechanism: str
) -> None:
    assert "refused" == client(login(mechanism, "guess"))
    gc.collect()


def test_java_client_connects_securely(login: Callable[..., Login], tmp_path: Path) -> None:
    logins = [
        *(login(mechanism) for mechanism in (None, *MECHANISMS)),
        *(login(mechanism, "guess") for mechanism in MECHANISMS),
    ]
    lines = [line for each in logins for line in (*_java(each), "")]

    said = run_program(
        HERE / "java" / "Secured.java", lines=[f"{line}\n" for line in lines], level="off"
    ).splitlines()

    assert ["ok"] * 4 == said[:4]
    assert (
        "SaslAuthenticationException: Authentication failed: Invalid username or password"
        == said[4]
    )
    assert [
        "SaslAuthenticationException: Authentication failed during authentication due to invalid"
        f" credentials with SASL mechanism {mechanism}"
        for mechanism in MECHANISMS[1:]
    ] == said[5:]


def _java(login: Login) -> Iterator[str]:
    yield f"topic={login.topic}"
    yield f"bootstrap.servers={login.bootstrap}"
    yield f"security.protocol={login.protocol}"
    yield "ssl.truststore.type=PEM"
    yield f"ssl.truststore.location={login.authority}"
    if login.certificate is not None:
        yield "ssl.keystore.type=PEM"
        yield f"ssl.keystore.location={_pkcs8(login.certificate)}"
    if login.mechanism is not None:
        yield f"sasl.mechanism={login.mechanism}"
        module = (
            "plain.PlainLoginModule" if login.mechanism == "PLAIN" else "scram.ScramLoginModule"
        )
        password = login.password.replace('"', '\\"')
        yield (
            f"sasl.jaas.config=org.apache.kafka.common.security.{module} required"
            f' username="alice" password="{password}";'
        )


def _pkcs8(path: Path) -> Path:
    """
    The same key as Java wants it.
    """
    text = path.read_bytes()
    key = serialization.load_pem_private_key(text, None)
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    other = path.with_suffix(".pkcs8.pem")
    other.write_bytes(pem + text[text.index(b"-----BEGIN CERTIFICATE") :])
    return other


@pytest.mark.parametrize("mechanism", [None, *MECHANISMS])
def test_javascript_client_connects_securely(
    login: Callable[..., Login], node_clients: Path, mechanism: str | None
) -> None:
    assert "ok" == _node(node_clients, login(mechanism))
    if mechanism is not None:
        refused = _node(node_clients, login(mechanism, "guess"))
        assert "KafkaJSSASLAuthenticationError" in refused


def _node(clients: Path, login: Login) -> str:
    needs_program("node")
    command = [
        "node",
        str(clients.parent / "secured.mjs"),
        login.bootstrap,
        login.topic,
        str(login.authority),
        (login.mechanism or "-").lower(),
        "alice",
        login.password,
        str(login.certificate or "-"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.strip()
