"""
Clients that authenticate themselves in every order get the same answers from Apache Kafka and here.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Iterator
from struct import pack
from typing import Any, Final

import pytest

from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.support.both_brokers import BothBrokers
from tests.support.broker_process import BrokerProcess
from tests.support.sasl_client import NONCE, SaslClient, add_scram_user

pytestmark = pytest.mark.prove

PLAIN_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"
BEARER_MODULE: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
LISTENER: Final = "SASL_PLAINTEXT"
PREFIX: Final = "listener.name.sasl_plaintext"
USERS: Final = (
    f'{PLAIN_MODULE} required user_alice="a secret" user_bob="it is \\"b\\"" user_carol=plain-word;'
)
SETTINGS: Final = {
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
    f"{PREFIX}.oauthbearer.sasl.jaas.config": f"{BEARER_MODULE} required"
    ' unsecuredLoginStringClaim_sub="broker" unsecuredValidatorRequiredScope="read write"'
    ' unsecuredValidatorAllowableClockSkewMs="3000";',
    f"{PREFIX}.plain.sasl.jaas.config": USERS,
    f"{PREFIX}.scram-sha-256.sasl.jaas.config": f"{SCRAM_MODULE} required;",
    f"{PREFIX}.scram-sha-512.sasl.jaas.config": f"{SCRAM_MODULE} required;",
    f"{PREFIX}.scram-sha-512.connections.max.reauth.ms": "2500",
    "sasl.server.max.receive.size": "2000",
}
Script = Callable[[SaslClient], list[Any]]
SCRAM_USERS: Final = {"dora": "d secret", "e,v=e": "comma, equals="}


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BothBrokers]:
    directory = tmp_path_factory.mktemp("sasl")
    brokers = BothBrokers.side_by_side(directory, SETTINGS, secured=[LISTENER])
    # A file has an escape in front of each backslash, an option of the command line has none.
    brokers.kafka.settings[f"{PREFIX}.plain.sasl.jaas.config"] = USERS.replace("\\", "\\\\")
    with brokers:
        brokers.start()
        for broker in brokers:
            add_users(broker)
        yield brokers


def assert_alike(both: BothBrokers, script: Script, listener: str | None = LISTENER) -> None:
    """
    A new client of each broker sees the same.
    """
    seen = []
    for broker in both:
        port = broker.port if listener is None else broker.ports[listener]
        with SaslClient(port) as client:
            seen.append(script(client))
    kafka, barnabas = seen
    assert kafka == barnabas


def add_users(broker: BrokerProcess) -> None:
    for name, password in SCRAM_USERS.items():
        add_scram_user(broker.port, name, password)
    time.sleep(0.5)  # Apache Kafka answers a moment before its broker knows.


def plain(user: str, password: str, authorization_id: str = "") -> bytes:
    return f"{authorization_id}\0{user}\0{password}".encode()


def versions(client: SaslClient, version: int = 3, name: str = "t") -> Any:
    request = ApiVersionsRequest(client_software_name=name, client_software_version="1")
    answer = client.ask(request, version)
    return answer if isinstance(answer, str) else answer.error_code


def metadata(client: SaslClient) -> Any:
    answer = client.ask(MetadataRequest(topics=[]), 8)
    return answer if isinstance(answer, str) else len(answer.brokers)


PLAIN: Final = "PLAIN"
S256: Final = "SCRAM-SHA-256"
S512: Final = "SCRAM-SHA-512"
ALICE: Final = plain("alice", "a secret")
UNKNOWN_API: Final = bytes.fromhex("0000000a7fff00000000000100000000")
FIRST: Final = f"n=dora,r={NONCE}".encode()


def pause(seconds: float) -> str:
    time.sleep(seconds)
    return "a pause"


def dora(client: SaslClient) -> Any:
    return client.scram("dora", "d secret", name="sha512")


BEARER: Final = "OAUTHBEARER"
SCOPE: Final = ["read", "write", "more"]


def unsecured(header: Any = None, **claims: Any) -> str:
    """
    A token without a signature. Times are in seconds from now.
    """
    now = time.time()
    times = {name: now + claims[name] for name in ("exp", "iat") if name in claims}
    parts: list[Any] = [{"alg": "none"} if header is None else header, {**claims, **times}]
    encoded = (base64.urlsafe_b64encode(json.dumps(part).encode()) for part in parts)
    return ".".join(part.decode().rstrip("=") for part in encoded) + "."


def bearer(client: SaslClient, token: str, name: str = "", extension: str = "") -> list[Any]:
    """
    What both messages are answered.
    """
    first = f"n,{name},\x01auth=Bearer {token}\x01{extension}\x01"
    answers = [client.handshake(BEARER), client.authenticate(first.encode())]
    if isinstance(answers[1], tuple) and answers[1][0] == 0 and answers[1][2]:
        answers.append(client.authenticate(b"\x01"))
        answers.append(client.end())
    else:
        answers.append(metadata(client))
    return answers


GOOD: Final = {"sub": "gil", "exp": 600, "iat": -1, "scope": SCOPE}
TOKENS: Final[dict[str, Callable[[], str]]] = {
    "good": lambda: unsecured(**GOOD),
    "without iat": lambda: unsecured(sub="gil", exp=600, scope=SCOPE),
    "of no one": lambda: unsecured(exp=600, scope=SCOPE),
    "of a blank": lambda: unsecured(sub=" ", exp=600, scope=SCOPE),
    "of a number": lambda: unsecured(sub=5, exp=600, scope=SCOPE),
    "without end": lambda: unsecured(sub="gil", scope=SCOPE),
    "that has ended": lambda: unsecured(**{**GOOD, "exp": -5, "iat": -10}),
    "that has just ended": lambda: unsecured(**{**GOOD, "exp": -1, "iat": -10}),
    "that begins later": lambda: unsecured(**{**GOOD, "iat": 60}),
    "that begins soon": lambda: unsecured(**{**GOOD, "iat": 1}),
    "that ends before it begins": lambda: unsecured(**{**GOOD, "exp": 1, "iat": 2}),
    "not before": lambda: unsecured(**GOOD, nbf=9_999_999_999),
    "without a scope": lambda: unsecured(sub="gil", exp=600),
    "with another scope": lambda: unsecured(sub="gil", exp=600, scope=["read"]),
    "with a signature": lambda: unsecured({"alg": "HS256"}, **GOOD) + "c2ln",
    "with a signature of none": lambda: unsecured(**GOOD) + "c2ln",
    "with two parts": lambda: "a.b",
    "with four parts": lambda: "a.b.c.d",
    "of no JSON": lambda: "YQ.YQ.",
    "of no base64": lambda: "a.b.",
}


@pytest.mark.parametrize("token", TOKENS)
def test_both_brokers_accept_the_same_oauth_tokens(both: BothBrokers, token: str) -> None:
    text = TOKENS[token]()
    assert_alike(both, lambda client: bearer(client, text))


@pytest.mark.parametrize(
    ("name", "extension"),
    [
        ("a=gil", ""),
        ("a=other", ""),
        ("b=gil", ""),
        ("", "key=value\x01"),
        ("", "k1=value\x01"),
        ("", "auth=Bearer x\x01"),
        ("", "key=\x01"),
        ("", "key=a=b\x01"),
    ],
)
def test_both_brokers_accept_the_same_first_messages(
    both: BothBrokers, name: str, extension: str
) -> None:
    text = unsecured(**GOOD)
    assert_alike(both, lambda client: bearer(client, text, name, extension))


def messages(mechanism: str, *tokens: bytes) -> Script:
    """
    Send tokens until the broker closes the connection.
    """
    return lambda client: [
        client.handshake(mechanism),
        *map(client.authenticate, tokens),
        client.end(),
    ]


SCRIPTS: Final[dict[str, Script]] = {
    "plain": lambda c: [versions(c), c.handshake(PLAIN), c.authenticate(ALICE), metadata(c)],
    "plain, without versions": lambda c: [
        c.handshake(PLAIN),
        c.authenticate(plain("bob", 'it is "b"')),
        metadata(c),
    ],
    "plain, a word without quotes": lambda c: [
        c.handshake(PLAIN),
        c.authenticate(plain("carol", "plain-word"), 0),
        metadata(c),
    ],
    "plain, acting as oneself": lambda c: [
        c.handshake(PLAIN),
        c.authenticate(plain("alice", "a secret", "alice"), 1),
    ],
    "plain, acting as another": messages(PLAIN, plain("alice", "a secret", "bob")),
    "plain, wrong password": messages(PLAIN, plain("alice", "no")),
    "plain, unknown user": messages(PLAIN, plain("nobody", "no")),
    "plain, no user": messages(PLAIN, plain("", "x")),
    "plain, no password": messages(PLAIN, plain("alice", "")),
    "plain, two parts": messages(PLAIN, b"a\0b"),
    "plain, many parts": messages(PLAIN, b"a\0b\0c\0d\0e\0f"),
    "plain, nothing": messages(PLAIN, b""),
    "plain, raw": lambda c: [c.handshake(PLAIN, 0), c.raw(ALICE), metadata(c)],
    "plain, raw, wrong": lambda c: [c.handshake(PLAIN, 0), c.raw(plain("alice", "no")), c.end()],
    "no mechanism of that name": lambda c: [versions(c), c.handshake("plain"), c.end()],
    "kerberos": lambda c: [c.handshake("GSSAPI"), c.end()],
    "metadata first": lambda c: [metadata(c)],
    "metadata after versions": lambda c: [versions(c), metadata(c)],
    "versions twice": lambda c: [versions(c), versions(c)],
    "unknown versions, then known ones": lambda c: [
        versions(c, 3, "?!"),
        versions(c),
        c.handshake(PLAIN),
    ],
    "tokens first": lambda c: [c.authenticate(ALICE)],
    "metadata between handshake and token": lambda c: [c.handshake(PLAIN), metadata(c), c.end()],
    "handshake twice": lambda c: [c.handshake(PLAIN), c.handshake(PLAIN), c.end()],
    "handshake after all": lambda c: [
        c.handshake(PLAIN),
        c.authenticate(ALICE),
        c.handshake(PLAIN),
        metadata(c),
    ],
    "token after all": lambda c: [
        c.handshake(PLAIN),
        c.authenticate(ALICE),
        c.authenticate(b"x")[0],
        metadata(c),
    ],
    "scram": lambda c: [versions(c), c.handshake(S256), c.scram("dora", "d secret"), metadata(c)],
    "scram, long": lambda c: [c.handshake(S512), dora(c), metadata(c)],
    "scram, a name with signs": lambda c: [
        c.handshake(S256),
        c.scram("e=2Cv=3De", "comma, equals="),
        metadata(c),
    ],
    "scram, wrong password": lambda c: [c.handshake(S256), c.scram("dora", "no"), c.end()],
    "scram, unknown user": lambda c: [c.handshake(S256), c.scram("nobody", "no"), c.end()],
    "scram, acting as oneself": lambda c: [
        c.handshake(S256),
        c.authenticate(b"n,a=dora," + FIRST)[0],
    ],
    "scram, acting as another": messages(S256, b"n,a=alice," + FIRST),
    "scram, channel binding": messages(S256, b"p=tls-unique,," + FIRST),
    "scram, might bind": messages(S256, b"y,," + FIRST),
    "scram, no message": messages(S256, b"\xff\0"),
    "scram, another nonce": lambda c: [
        c.handshake(S256),
        c.authenticate(b"n,," + FIRST)[0],
        c.authenticate(b"c=biws,r=x,p=AAAA"),
        c.end(),
    ],
    "scram, a token that is none": lambda c: [
        c.handshake(S256),
        c.scram("dora", "d secret", extension=",tokenauth=true"),
        c.end(),
    ],
    "authenticates again": lambda c: [
        c.handshake(S512),
        dora(c),
        c.handshake(S512),
        dora(c),
        c.handshake(S512),
        metadata(c),
        pause(1.2),
        c.handshake(S512),
        dora(c),
        metadata(c),
    ],
    "authenticates again as another": lambda c: [
        c.handshake(S512),
        dora(c),
        pause(1.2),
        c.handshake(S512),
        c.scram("e=2Cv=3De", "comma, equals=", name="sha512"),
        c.end(),
    ],
    "authenticates again otherwise": lambda c: [
        c.handshake(S512),
        dora(c),
        pause(1.2),
        c.handshake(PLAIN),
        c.authenticate(plain("dora", "x")),
        c.end(),
    ],
    "authenticates again, wrong password": lambda c: [
        c.handshake(S512),
        dora(c),
        pause(1.2),
        c.handshake(S512),
        c.scram("dora", "no", name="sha512"),
        c.end(),
    ],
    "a session that has ended": lambda c: [
        c.handshake(S512),
        dora(c),
        metadata(c),
        pause(2.7),
        metadata(c),
    ],
    "a session that has ended, again": lambda c: [
        c.handshake(S512),
        dora(c),
        pause(2.7),
        c.handshake(S512),
        dora(c),
        metadata(c),
    ],
    "a large token": lambda c: [c.handshake(PLAIN), c.authenticate(b"x" * 3000)],
    "a large request after all": lambda c: [c.handshake(PLAIN), c.authenticate(ALICE), large(c)],
    "a negative size": lambda c: [c.handshake(PLAIN), c.socket.sendall(pack(">i", -5)), c.end()],
    "an unknown API": lambda c: [c.socket.sendall(UNKNOWN_API), c.end()],
}


def large(client: SaslClient) -> Any:
    request = SaslHandshakeRequest(mechanism="x" * 10_000)
    answer = client.ask(request, 1)
    return answer if isinstance(answer, str) else answer.error_code


def test_both_brokers_refuse_sasl_where_it_is_disabled(both: BothBrokers) -> None:
    def ask(client: SaslClient) -> list[Any]:
        return [
            *(client.handshake(PLAIN, version) for version in (0, 1)),
            *(client.authenticate(ALICE, version) for version in (0, 1, 2)),
            metadata(client),
        ]

    assert_alike(both, ask, None)


@pytest.mark.parametrize("script", SCRIPTS)
def test_both_brokers_answer_sasl_requests_alike(both: BothBrokers, script: str) -> None:
    assert_alike(both, SCRIPTS[script])
