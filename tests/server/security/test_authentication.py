from __future__ import annotations

import base64
import hashlib
import hmac
import random
from collections.abc import Callable
from typing import Final

import pytest

from barnabas.coordination.security.principal import KafkaPrincipal
from barnabas.coordination.security.sasl.decoys import ScramCredential
from barnabas.protocol import apis
from barnabas.protocol.errors import ErrorCode
from barnabas.server.security.errors import AuthenticationFailed
from barnabas.server.security.sasl import scram
from barnabas.server.security.sasl.authentication import (
    LEAST_PAUSE_S,
    Authentication,
    Mechanism,
    Verdict,
)
from barnabas.server.security.sasl.mechanism import SaslServer
from barnabas.server.security.sasl.oauthbearer import (
    BearerToken,
    InvalidToken,
    OAuthBearerSaslServer,
)
from barnabas.server.security.sasl.plain import PlainSaslServer
from barnabas.server.security.sasl.scram import ScramSaslServer
from barnabas.testing.manual_clock import ManualClock

NONE: Final = ErrorCode.NONE
VERSIONS: Final = apis.API_VERSIONS.key
HANDSHAKE: Final = apis.SASL_HANDSHAKE.key
AUTHENTICATE: Final = apis.SASL_AUTHENTICATE.key
PRODUCE: Final = apis.PRODUCE.key
PASSWORDS: Final = {"alice": "wonderland", "bob": "builder"}
ALICE: Final = b"\0alice\0wonderland"
BOB: Final = b"\0bob\0builder"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def made(clock: ManualClock, max_reauth_ms: int = 0) -> Authentication:
    mechanisms = {
        name: Mechanism(
            name=name, server=lambda: PlainSaslServer(PASSWORDS), max_reauth_ms=max_reauth_ms
        )
        for name in ("PLAIN", "OTHER")
    }
    return Authentication(mechanisms, clock)


def verdicts(authentication: Authentication) -> list[Verdict]:
    return [authentication.verdict(key) for key in (VERSIONS, HANDSHAKE, AUTHENTICATE, PRODUCE)]


def test_authentication_requests_are_accepted_only_in_order(clock: ManualClock) -> None:
    client = made(clock)
    assert [Verdict.PASS, Verdict.PASS, Verdict.CLOSE, Verdict.CLOSE] == verdicts(client)

    client.note_versions_told()
    assert [Verdict.CLOSE, Verdict.PASS, Verdict.CLOSE, Verdict.CLOSE] == verdicts(client)

    assert NONE is client.begin("PLAIN", 1)
    assert [Verdict.REFUSE, Verdict.REFUSE, Verdict.PASS, Verdict.REFUSE] == verdicts(client)
    assert client.principal is None

    assert b"" == client.evaluate(ALICE)
    assert [Verdict.PASS] * 4 == verdicts(client)
    assert KafkaPrincipal("User", "alice") == client.principal
    assert client.is_final


@pytest.mark.parametrize("key", sorted(apis.MODULES))
def test_other_requests_are_refused_before_authentication(clock: ManualClock, key: int) -> None:
    client = made(clock)
    passing = {
        "start": {VERSIONS, HANDSHAKE},
        "versions told": {HANDSHAKE},
        "tokens": {AUTHENTICATE},
        "raw tokens": set(),
    }
    steps: dict[str, Callable[[], object]] = {
        "start": lambda: None,
        "versions told": client.note_versions_told,
        "tokens": lambda: client.begin("PLAIN", 1),
        "raw tokens": lambda: client.begin("PLAIN", 0),
    }
    for state, step in steps.items():
        step()
        assert (key in passing[state]) == (client.verdict(key) is Verdict.PASS), state


def test_unknown_sasl_mechanism_changes_nothing(clock: ManualClock) -> None:
    client = made(clock)

    assert ErrorCode.UNSUPPORTED_SASL_MECHANISM is client.begin("plain", 1)
    assert not client.is_in_exchange


def test_reauthentication_is_refused_without_a_session_lifetime(clock: ManualClock) -> None:
    client = made(clock)
    client.begin("PLAIN", 1)
    client.evaluate(ALICE)

    assert ErrorCode.ILLEGAL_SASL_STATE is client.begin("PLAIN", 1)
    assert 0 == client.session_lifetime_ms


def test_session_expires_after_its_lifetime(clock: ManualClock) -> None:
    client = made(clock, max_reauth_ms=10_000)
    client.begin("PLAIN", 1)
    client.evaluate(ALICE)
    assert (10_000, False) == (client.session_lifetime_ms, client.is_final)

    clock.advance(9.9)
    assert Verdict.PASS is client.verdict(PRODUCE)
    clock.advance(0.1)
    assert [Verdict.CLOSE, Verdict.PASS, Verdict.CLOSE, Verdict.CLOSE] == verdicts(client)

    assert NONE is client.begin("PLAIN", 1)
    client.evaluate(ALICE)
    assert Verdict.PASS is client.verdict(PRODUCE)


def test_reauthentication_must_keep_the_principal(clock: ManualClock) -> None:
    client = made(clock, max_reauth_ms=10_000)
    client.begin("PLAIN", 1)
    client.evaluate(ALICE)

    client.begin("PLAIN", 1)
    with pytest.raises(AuthenticationFailed) as refused:
        client.evaluate(BOB)

    assert refused.value.message == (
        "Cannot change principals during re-authentication from User.alice: User.bob"
    )
    assert KafkaPrincipal("User", "alice") == client.principal


def test_reauthentication_must_keep_the_mechanism(clock: ManualClock) -> None:
    client = made(clock, max_reauth_ms=10_000)
    client.begin("PLAIN", 1)
    client.evaluate(ALICE)

    assert NONE is client.begin("OTHER", 1)
    assert [Verdict.CLOSE] * 4 == verdicts(client)


def test_reauthentication_is_rate_limited(clock: ManualClock) -> None:
    client = made(clock, max_reauth_ms=10_000)
    client.begin("PLAIN", 1)
    client.evaluate(ALICE)
    assert NONE is client.begin("PLAIN", 1), "the first time it may be soon"
    client.evaluate(ALICE)

    assert ErrorCode.ILLEGAL_SASL_STATE is client.begin("PLAIN", 1)
    clock.advance(LEAST_PAUSE_S)
    assert NONE is client.begin("PLAIN", 1)


def test_session_of_a_token_ends_with_the_token(clock: ManualClock) -> None:
    def server() -> SaslServer:
        return OAuthBearerSaslServer(lambda _: BearerToken("gil", clock.now_ms() + 4_000))

    client = Authentication({"B": Mechanism(name="B", server=server, max_reauth_ms=10_000)}, clock)
    client.begin("B", 1)
    client.evaluate(b"n,,\x01auth=Bearer x\x01\x01")

    assert 4_000 == client.session_lifetime_ms


def test_client_is_not_told_why_authentication_failed(clock: ManualClock) -> None:
    client = Authentication(
        {"S": Mechanism(name="S", server=lambda: ScramSaslServer("SCRAM-SHA-256", lambda _: None))},
        clock,
    )
    client.begin("S", 1)
    with pytest.raises(AuthenticationFailed) as refused:
        client.evaluate(b"nonsense")

    assert "its first message is no SCRAM" == str(refused.value)
    assert refused.value.message == (
        "Authentication failed during authentication due to invalid credentials with SASL"
        " mechanism S"
    )


# SCRAM


def credential(password: str, salt: bytes, iterations: int = 4096) -> ScramCredential:
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, iterations)
    key = hmac.digest(salted, b"Client Key", "sha256")
    server_key = hmac.digest(salted, b"Server Key", "sha256")
    return ScramCredential(salt, hashlib.sha256(key).digest(), server_key, iterations)


RFC_7677: Final = (
    b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO",
    b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
    b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
    b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
)
"""
The example of the RFC, with the password pencil.
"""
PENCIL: Final = credential("pencil", base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ=="))


@pytest.fixture
def nonce_of_the_rfc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scram, "fresh_nonce", lambda: b"%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0")


def users(name: str) -> ScramCredential | None:
    return PENCIL if name == "user" else None


@pytest.mark.usefixtures("nonce_of_the_rfc")
def test_scram_agrees_with_the_example_of_the_rfc() -> None:
    server = ScramSaslServer("SCRAM-SHA-256", users)
    first, challenge, final, signature = RFC_7677

    assert challenge == server.evaluate(first)
    assert server.user is None
    assert signature == server.evaluate(final)
    assert "user" == server.user


def test_unknown_user_gets_the_same_salt_each_time() -> None:
    def challenge(name: str) -> bytes:
        server = ScramSaslServer("SCRAM-SHA-256", users)
        return server.evaluate(f"n,,n={name},r=x".encode()).split(b",", 1)[1]

    assert challenge("nobody") == challenge("nobody")
    assert challenge("nobody") != challenge("noone")
    assert len(challenge("nobody")) == len(challenge("noone"))


MUTATIONS: Final = 3000


@pytest.mark.usefixtures("nonce_of_the_rfc")
def test_mutated_scram_messages_never_authenticate() -> None:
    dice = random.Random(5)
    first, _, final, _ = RFC_7677
    for _ in range(MUTATIONS):
        server = ScramSaslServer("SCRAM-SHA-256", users)
        which = dice.randrange(2)
        messages = [first, final]
        messages[which] = mutated(messages[which], dice)
        if messages == [first, final]:
            continue
        try:
            for message in messages:
                server.evaluate(message)
        except AuthenticationFailed:
            pass
        assert server.user is None or is_the_same_proof(messages[1], final), messages


def is_the_same_proof(one: bytes, other: bytes) -> bool:
    """
    Different base64 texts may encode the same bytes.
    """
    (head, proof), (expected_head, expected) = (each.split(b",p=") for each in (one, other))
    return head == expected_head and base64.b64decode(proof) == base64.b64decode(expected)


def test_mutated_passwords_and_tokens_never_authenticate() -> None:
    dice = random.Random(6)
    bearer = b"n,a=gil,\x01auth=Bearer good\x01\x01"

    def validate(token: str) -> BearerToken:
        if token != "good":
            raise InvalidToken("no")
        return BearerToken("gil", 0)

    for _ in range(MUTATIONS):
        for server, good in (
            (PlainSaslServer(PASSWORDS), ALICE),
            (OAuthBearerSaslServer(validate), bearer),
        ):
            message = mutated(good, dice)
            try:
                answer = server.evaluate(message)
            except AuthenticationFailed:
                continue
            if server.user is None:
                assert answer, "a challenge"
            else:
                assert server.user in ("alice", "gil"), message
                assert b"wonderland" in message or b" good" in message, message


def mutated(message: bytes, dice: random.Random) -> bytes:
    data = bytearray(message)
    for _ in range(dice.choice([1, 1, 2, 5])):
        at = dice.randrange(len(data) + 1)
        kind = dice.randrange(4)
        if kind == 0:
            data[at:at] = bytes(dice.choices(b"\0\x01,=nracp\xff\x80", k=dice.randrange(1, 4)))
        elif kind == 1:
            del data[at : at + dice.randrange(1, 8)]
        elif kind == 2 and at < len(data):
            data[at] = dice.randrange(256)
        else:
            data[at:at] = data[: dice.randrange(len(data) + 1)]
    return bytes(data)
