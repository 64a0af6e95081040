"""
Clients in four languages on listeners with TLS, by every mechanism that they have.
"""

from __future__ import annotations

import gc
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from cryptography.hazmat.primitives import serialization

from tests.interop.clients.base import values
from tests.interop.clients.sessions import SESSIONS
from tests.interop.conftest import needs_program
from tests.interop.test_other_languages import node_clients
from tests.support.broker_process import Barnabas
from tests.support.certificates import Certificates
from tests.support.commands import output_of
from tests.support.java_programs import run_program
from tests.support.sasl_client import add_scram_user

__all__ = ["node_clients"]

pytestmark = pytest.mark.prove

HERE: Final = Path(__file__).parent
PATIENCE: Final = 60
RECORDS: Final = 10
PASSWORD: Final = 'p=w, "1"'
USERS: Final = (
    'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="p=w, \\"1\\"";'
)
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


class Login(NamedTuple):
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


def options(library: str, login: Login) -> dict[str, Any]:
    chosen: dict[str, Any] = {"security_protocol": login.protocol}
    authority, certificate = str(login.authority), login.certificate and str(login.certificate)
    user = "sasl_plain"
    match library:
        case "confluent-kafka":
            user = "sasl"
            chosen["ssl_ca_location"] = authority
            chosen["ssl_certificate_location"] = chosen["ssl_key_location"] = certificate
        case "kafka-python":
            chosen["ssl_cafile"] = authority
            chosen["ssl_certfile"] = chosen["ssl_keyfile"] = certificate
        case _:
            chosen["ssl_context"] = context = ssl.create_default_context(cafile=authority)
            if certificate is not None:
                context.load_cert_chain(certificate)
    if login.mechanism is not None:
        chosen["sasl_mechanism"] = login.mechanism
        chosen |= {f"{user}_username": "alice", f"{user}_password": login.password}
    return chosen


IMPATIENT: Final[Mapping[str, Mapping[str, int]]] = {
    "confluent-kafka": {"message_timeout_ms": 3000},
    "kafka-python": {"bootstrap_timeout_ms": 3000},
    "aiokafka": {},
}
"""
Options of a producer that gives up soon if it is refused.
"""


@pytest.mark.parametrize("library", SESSIONS)
@pytest.mark.parametrize("mechanism", [None, *MECHANISMS])
def test_python_client_connects_securely(
    login: Callable[..., Login], library: str, mechanism: str | None
) -> None:
    used = login(mechanism)
    chosen = options(library, used)
    sent = [f"{used.topic}{n}".encode() for n in range(RECORDS)]
    with SESSIONS[library](used.bootstrap) as session:
        session.writer(**chosen).send(used.topic, sent)
        assert sent == values(session.reader(used.topic, 0, **chosen), RECORDS)


@pytest.mark.parametrize("library", SESSIONS)
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_wrong_password_is_refused(
    login: Callable[..., Login], library: str, mechanism: str
) -> None:
    used = login(mechanism, "guess")
    with SESSIONS[library](used.bootstrap) as session:
        with session.refuses():
            writer = session.writer(**options(library, used), **IMPATIENT[library])
            writer.send(used.topic, [b"never"])
        # aiokafka leaves connections open, which the broker closes a moment later.
        time.sleep(0.5)
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
    return output_of(
        "node",
        clients.parent / "secured.mjs",
        login.bootstrap,
        login.topic,
        login.authority,
        (login.mechanism or "-").lower(),
        "alice",
        login.password,
        login.certificate or "-",
    ).strip()
