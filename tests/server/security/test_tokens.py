from __future__ import annotations

import json
import threading
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Producer
from hypothesis import example, given, settings
from hypothesis import strategies as st
from joserfc import jws, jwt
from joserfc.jwk import ECKey, KeySet, OctKey, RSAKey

from barnabas.server.security.sasl import signed_tokens
from barnabas.server.security.sasl.oauthbearer import InvalidToken
from barnabas.server.security.sasl.signed_tokens import (
    LEAST_PAUSE_S,
    JsonWebKeys,
    SignedValidator,
    TokenRules,
)
from barnabas.server.security.sasl.unsecured_tokens import UnsecuredValidator
from barnabas.storage.config.option_values import ConfigError
from barnabas.testing.manual_clock import ManualClock
from tests.support.broker_process import Barnabas, wait_for

RSA: Final = RSAKey.generate_key(2048, {"kid": "first"})
EC: Final = ECKey.generate_key("P-256", {"kid": "second"})
OTHER: Final = ECKey.generate_key("P-256", {"kid": "second"})
RULES: Final = TokenRules(audience=["kafka"], issuer="me", skew_s=30, user_claim="sub")
NOW_S: Final = 1_800_000_000
CLAIMS: Final = {"sub": "gil", "exp": NOW_S + 600, "iat": NOW_S, "iss": "me", "aud": ["kafka"]}
HANDLER: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"


def token(key: Any = RSA, algorithm: str = "RS256", **claims: Any) -> str:
    header = {"alg": algorithm, "kid": key.kid}
    kept = {name: value for name, value in {**CLAIMS, **claims}.items() if value is not None}
    return jwt.encode(header, kept, key, algorithms=[algorithm])


def public(*keys: Any) -> str:
    return json.dumps(KeySet(list(keys)).as_dict(private=False))


class Issuer:
    def __init__(self, text: str) -> None:
        issuer = self
        self.text = text
        self.asked = 0

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                issuer.asked += 1
                self.send_response(200)
                self.end_headers()
                self.wfile.write(issuer.text.encode())

            def log_message(self, *_: object) -> None:
                pass

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/keys"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    issuer = Issuer(public(RSA, EC))
    yield issuer
    issuer.close()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW_S * 1000)


@pytest.fixture
def validate(issuer: Issuer, clock: ManualClock) -> SignedValidator:
    return SignedValidator(JsonWebKeys(issuer.url, 3600, clock), RULES, clock)


@pytest.mark.parametrize(
    "text",
    [
        token(),
        token(EC, "ES256"),
        token(RSA, "PS512"),
        token(aud="kafka"),
        token(aud=["other", "kafka"]),
        token(exp=NOW_S - 29),
        token(nbf=NOW_S + 29),
    ],
)
def test_valid_token_is_accepted(validate: SignedValidator, text: str) -> None:
    assert "gil" == validate(text).user
    assert validate(token()).expires_ms == (NOW_S + 600) * 1000


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (token(OTHER, "ES256"), "bad_signature"),
        (token()[:-3] + "AAA", "bad_signature"),
        (token(exp=NOW_S - 31), "it has ended"),
        (token(nbf=NOW_S + 31), "it begins later"),
        (token(exp=None), "no exp or no iat"),
        (token(iat=None), "no exp or no iat"),
        (token(exp="soon"), "its exp is no time"),
        (token(sub=None), "it has no sub"),
        (token(sub=""), "it has no sub"),
        (token(sub=["gil"]), "it has no sub"),
        (token(iss="other"), "another issuer"),
        (token(aud="other"), "another audience"),
        (token(aud=None), "another audience"),
        (token(RSAKey.generate_key(2048, {"kid": "third"})), None),
        (jwt.encode({"alg": "HS256", "kid": "first"}, CLAIMS, OctKey.generate_key(256)), None),
        ("eyJhbGciOiJub25lIn0.eyJzdWIiOiJnaWwifQ.", None),
        ("a.b.c", None),
        ("", None),
    ],
)
def test_invalid_token_is_refused(validate: SignedValidator, text: str, reason: str | None) -> None:
    with pytest.raises(InvalidToken, match=reason):
        validate(text)


JSON: Final = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)
HEADER_NAMES: Final = ("alg", "kid", "crit", "typ", "cty", "b64", "jwk", "jku", "x5c", "zip", "exp")


def part(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


@settings(max_examples=300)
@given(
    header=st.dictionaries(st.sampled_from(HEADER_NAMES), JSON),
    claims=JSON,
    signature=st.binary(max_size=70),
    kid=st.sampled_from(["first", "second", "none"]),
    algorithm=st.sampled_from(["RS256", "ES256", "EdDSA", "none"]),
)
@example(header={"crit": 5}, claims={}, signature=b"", kid="first", algorithm="RS256")
def test_token_with_any_header_and_claims_is_refused_as_invalid(
    header: dict[str, object], claims: object, signature: bytes, kid: str, algorithm: str
) -> None:
    clock = ManualClock(NOW_S * 1000)
    header = {"alg": algorithm, "kid": kid, **header}
    parts = (json.dumps(header).encode(), json.dumps(claims).encode(), signature)

    with pytest.raises(InvalidToken):
        SignedValidator(fixed_keys(), RULES, clock)(".".join(map(part, parts)))


@settings(max_examples=100)
@given(claims=st.dictionaries(st.sampled_from(["sub", "exp", "iat", "nbf", "iss", "aud"]), JSON))
def test_signed_token_with_any_claims_is_accepted_or_refused_as_invalid(
    claims: dict[str, object],
) -> None:
    text = part(json.dumps({**CLAIMS, **claims}).encode())
    signed = jws.serialize_compact(
        {"alg": "ES256", "kid": EC.kid}, urlsafe_b64decode(text + "=="), EC, algorithms=["ES256"]
    )
    try:
        found = SignedValidator(fixed_keys(), RULES, ManualClock(NOW_S * 1000))(signed)
    except InvalidToken:
        return

    assert found.user == {**CLAIMS, **claims}["sub"]


def fixed_keys() -> JsonWebKeys:
    keys = JsonWebKeys.__new__(JsonWebKeys)
    keys.current = KeySet([RSA, EC])
    keys.look = lambda *, is_missing: None  # type: ignore[method-assign]
    return keys


def test_new_signing_keys_are_found_and_old_ones_kept(
    issuer: Issuer, validate: SignedValidator, clock: ManualClock
) -> None:
    new = ECKey.generate_key("P-256", {"kid": "third"})
    issuer.text = public(EC, new)

    for _ in range(50):
        with pytest.raises(InvalidToken):
            validate(token(new, "ES256"))
    assert 1 == issuer.asked, "not before a pause"

    clock.advance(LEAST_PAUSE_S)
    with pytest.raises(InvalidToken):
        validate(token(new, "ES256"))
    wait_for(lambda: _is_taken(validate, token(new, "ES256")), "the new key", 10)
    assert 2 == issuer.asked

    issuer.text = "nothing"
    clock.advance(3600)
    fresh = token(new, "ES256", exp=NOW_S + 9000)
    assert "gil" == validate(fresh).user
    wait_for(lambda: issuer.asked == 3, "the issuer to be asked", 10)
    assert "gil" == validate(fresh).user


def _is_taken(validate: SignedValidator, text: str) -> bool:
    try:
        validate(text)
    except InvalidToken:
        return False
    return True


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("file:///nowhere.json", "No such file"),
        ("http://127.0.0.1:1/keys", "refused"),
        ("ftp://example.org/keys", "begins with https:// or file://"),
        ("keys.json", "begins with https:// or file://"),
    ],
)
def test_unavailable_signing_keys_abort_the_start(
    clock: ManualClock, url: str, reason: str
) -> None:
    with pytest.raises(ConfigError, match=reason):
        JsonWebKeys(url, 3600, clock)


def test_slow_issuer_times_out(clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    class Drip:
        def __enter__(self) -> Drip:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def read1(self, _size: int) -> bytes:
            clock.advance(9)
            return b" "

    monkeypatch.setattr(signed_tokens, "open_url", lambda *_, **__: Drip())

    with pytest.raises(ConfigError, match="it took longer than 30 s"):
        JsonWebKeys("http://example.org/keys", 3600, clock)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"keys": 5}', '{"keys": [{}]}', " " * 2_000_000])
def test_malformed_key_set_aborts_the_start(clock: ManualClock, tmp_path: Path, text: str) -> None:
    path = tmp_path / "keys of me.json"
    path.write_text(text)

    with pytest.raises(ConfigError, match="has no keys"):
        JsonWebKeys(path.as_uri(), 3600, clock)


@pytest.mark.parametrize("text", ["W10.W10.", "e30.e30.", "eyJhbGciOiJub25lIn0.W10.", "..", "\x00"])
def test_unsigned_token_is_refused(clock: ManualClock, text: str) -> None:
    with pytest.raises(InvalidToken):
        UnsecuredValidator({}, clock)(text)


def test_client_reauthenticates_with_new_tokens(issuer: Issuer, tmp_path: Path) -> None:
    """
    The client authenticates again before the token expires, or on a new connection if the machine
    is very busy.
    """
    broker = Barnabas(
        tmp_path,
        settings={
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            "listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config": (
                "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;"
            ),
            "listener.name.sasl_plaintext.oauthbearer.sasl.server.callback.handler.class": HANDLER,
            "sasl.oauthbearer.jwks.endpoint.url": issuer.url,
            "sasl.oauthbearer.expected.audience": "kafka,other",
        },
        secured=["SASL_PLAINTEXT"],
    )
    asked = []

    def give(_config: str) -> tuple[str, float]:
        asked.append(time.time())
        ends = asked[-1] + 5
        return token(sub="gil", iat=int(asked[-1]), exp=ends), ends

    try:
        broker.start()
        producer = Producer(
            {
                "bootstrap.servers": f"127.0.0.1:{broker.ports['SASL_PLAINTEXT']}",
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "OAUTHBEARER",
                "oauth_cb": give,
            }
        )
        delivered: list[Any] = []
        for _ in range(12):
            producer.produce("t", b"x", on_delivery=lambda error, _: delivered.append(error))
            assert 0 == producer.flush(10)
            time.sleep(0.5)
    finally:
        broker.close()
        print(broker.log_text()[-3000:])

    assert [None] * 12 == delivered
    assert len(asked) >= 2
