from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import threading
import tracemalloc
from sys import getsizeof
from typing import Any, Final, TypeVar

import pytest

from barnabas.coordination.cluster import delegation_tokens
from barnabas.coordination.cluster.delegation_tokens import MAX_TOKEN_BYTES_OF_A_REQUESTER
from barnabas.coordination.security.principal import KafkaPrincipal
from barnabas.coordination.security.sasl.credentials import NeedsWork
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.internal_topics.metadata_records import (
    DelegationTokenRecord,
    FeatureLevelRecord,
)
from barnabas.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.server.security.sasl import scram
from barnabas.storage.uuids import parse_uuid
from barnabas.testing.disks.memory import MemoryFiles
from tests.support.limits import stated
from tests.support.quotas import clock_of
from tests.support.sasl_client import CLOSED, NONCE, SaslClient
from tests.support.server import START_MS, TestBroker, running, until
from tests.support.token_requests import expiry, new_token, renewal, tokens_of

E = ErrorCode
T = TypeVar("T")

DAY_MS: Final = 86_400_000
HOUR_MS: Final = 3_600_000
SECRET: Final = "the key of the brokers"
PLAIN_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
PEOPLE: Final = ("alice", "bob", "carol")
WITHOUT_A_KEY: Final = {
    "listeners": "OPEN://127.0.0.1:0,S://127.0.0.1:0",
    "listener_security_protocol_map": "OPEN:PLAINTEXT,S:SASL_PLAINTEXT",
    "sasl_enabled_mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "listener_name_s_plain_sasl_jaas_config": f"{PLAIN_MODULE} required "
    + " ".join(f'user_{name}="{name}"' for name in PEOPLE)
    + ";",
    "connection_failed_authentication_delay_ms": "0",
}
OPTIONS: Final = {**WITHOUT_A_KEY, "delegation_token_secret_key": SECRET}
HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}

pytestmark = pytest.mark.broker(**OPTIONS)


def logged_in(broker: TestBroker, name: str) -> SaslClient:
    client = SaslClient(broker.listeners[1].port)
    client.log_in(name, name)
    return client


def by_token(
    broker: TestBroker, token: Any, mechanism: str = "SCRAM-SHA-256", secret: bytes | None = None
) -> tuple[SaslClient, Any]:
    client = SaslClient(broker.listeners[1].port)
    client.handshake(mechanism)
    password = base64.b64encode(bytes(token.hmac) if secret is None else secret).decode()
    told = client.scram(
        token.token_id, password, name=HASHES[mechanism], extension=",tokenauth=true"
    )
    return client, told


async def ask(broker: TestBroker, name: str, *requests: Any) -> list[Any]:
    def ask_all() -> list[Any]:
        with logged_in(broker, name) as client:
            return [client.ask(request, request.api.versions[-1]) for request in requests]

    return await asyncio.to_thread(ask_all)


async def create(broker: TestBroker, name: str = "alice", *renewers: str, **of: Any) -> Any:
    (token,) = await ask(broker, name, new_token(*renewers, **of))
    assert E.NONE == token.error_code
    return token


async def ids_seen(broker: TestBroker, name: str, *owners: str) -> list[str]:
    (answer,) = await ask(broker, name, tokens_of(owners or None))
    assert E.NONE == answer.error_code
    return [token.token_id for token in answer.tokens]


def metadata(client: SaslClient) -> Any:
    return client.ask(MetadataRequest(topics=[]), 8)


# Management


async def test_token_is_signed_with_the_secret_key_and_expires(broker: TestBroker) -> None:
    token = await create(broker, "alice", "User:bob", "User:carol")

    assert hmac.digest(SECRET.encode(), token.token_id.encode(), "sha512") == bytes(token.hmac)
    parse_uuid(token.token_id)
    assert ("User", "alice") == (token.principal_type, token.principal_name)
    assert "alice" == token.token_requester_principal_name
    times = token.issue_timestamp_ms, token.expiry_timestamp_ms, token.max_timestamp_ms
    assert (START_MS, START_MS + DAY_MS, START_MS + 7 * DAY_MS) == times
    (answer,) = await ask(broker, "alice", tokens_of())
    (seen,) = answer.tokens
    assert (token.token_id, bytes(token.hmac)) == (seen.token_id, bytes(seen.hmac))
    assert ["bob", "carol"] == [renewer.principal_name for renewer in seen.renewers]


async def test_empty_list_of_owners_describes_no_token(broker: TestBroker) -> None:
    await create(broker)

    (answer,) = await ask(broker, "alice", tokens_of([]))

    assert (0, []) == (answer.error_code, answer.tokens)


@pytest.mark.broker(
    **OPTIONS,
    delegation_token_max_lifetime_ms=str((1 << 63) - 1),
    delegation_token_expiry_time_ms=str((1 << 63) - 1),
)
async def test_token_lifetime_is_limited_to_the_largest_timestamp(broker: TestBroker) -> None:
    token = await create(broker)

    (renewed,) = await ask(broker, "alice", renewal(token.hmac))
    assert (1 << 63) - 1 == token.max_timestamp_ms == renewed.expiry_timestamp_ms


async def test_tokens_of_one_requester_take_a_bounded_memory(broker: TestBroker) -> None:
    """
    However large the renewers are. Other users still get tokens, and a removed token frees its
    memory.
    """
    names = [f"User:{number:03d}" + "\N{LINEAR B SYLLABLE B008 A}" * 5_000 for number in range(20)]
    most = stated("tokens-of-a-requester")
    assert most == MAX_TOKEN_BYTES_OF_A_REQUESTER

    answers = await ask(broker, "alice", *[new_token(*names)] * 30)

    made = int(most // sum(map(getsizeof, names)))
    codes = [answer.error_code for answer in answers]
    assert [E.NONE] * made + [E.POLICY_VIOLATION] * (30 - made) == codes
    await create(broker, "bob", *names)
    (freed,) = await ask(broker, "alice", expiry(answers[0].hmac, -1))
    assert E.NONE == freed.error_code
    await create(broker, "alice", *names)


async def test_tokens_that_a_start_has_read_count(monkeypatch: pytest.MonkeyPatch) -> None:
    files = MemoryFiles()
    async with running(files, **OPTIONS) as broker:
        for _ in range(3):
            await create(broker)
    monkeypatch.setattr(delegation_tokens, "MAX_TOKEN_BYTES_OF_A_REQUESTER", 3 * 2_700)

    async with running(files, **OPTIONS) as broker:
        (refused,) = await ask(broker, "alice", new_token())

    assert E.POLICY_VIOLATION == refused.error_code


async def test_all_tokens_take_a_bounded_memory(
    broker: TestBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert stated("delegation-tokens") == delegation_tokens.MAX_TOKEN_BYTES
    monkeypatch.setattr(delegation_tokens, "MAX_TOKEN_BYTES", 3 * 3_000)

    for name in ("alice", "bob", "carol"):
        await create(broker, name)
    (refused,) = await ask(broker, "carol", new_token())

    assert E.POLICY_VIOLATION == refused.error_code


async def test_a_token_takes_no_more_memory_than_is_counted(broker: TestBroker) -> None:
    await create(broker)
    assert broker.parts is not None
    tokens = broker.parts.delegation_tokens()
    requester = KafkaPrincipal("User", "alice")
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for number in range(200):
            renewer = KafkaPrincipal("User", f"{number}" * 10)
            record, _ = await tokens.create(requester, requester, [renewer], -1)
            for mechanism in HASHES:
                while True:
                    try:
                        tokens.login(mechanism, record.token_id)
                        break
                    except NeedsWork as needed:
                        needed.work()
        taken = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()

    assert taken <= 200 * delegation_tokens.TOKEN_BYTES * 1.1


@pytest.mark.broker(**WITHOUT_A_KEY)
async def test_tokens_are_disabled_without_a_secret_key(broker: TestBroker) -> None:
    requests = (new_token(), renewal(b"x"), expiry(b"x"), tokens_of(), tokens_of([]))

    answers = await ask(broker, "alice", *requests)

    assert [E.DELEGATION_TOKEN_AUTH_DISABLED] * 5 == [it.error_code for it in answers]
    assert [0, 0, 0] == [it.expiry_timestamp_ms for it in answers[:3]]


async def test_tokens_require_a_recent_metadata_version(
    broker: TestBroker,
) -> None:
    token = await create(broker)
    controller = broker.inside.controller
    level = FeatureLevelRecord(name="metadata.version", feature_level=13)
    await controller.change(lambda: controller.write([(level, 0)]))

    answers = await ask(broker, "alice", new_token(), renewal(token.hmac), expiry(token.hmac))

    assert [E.UNSUPPORTED_VERSION] * 3 == [it.error_code for it in answers]


async def test_secret_key_is_never_shown(broker: TestBroker) -> None:
    assert SECRET not in repr(broker.config)
    option = type(broker.config).options()["delegation.token.secret.key"]
    assert option.type.name == "PASSWORD"


# Authentication


@pytest.mark.parametrize("version", [0, 1])
async def test_unknown_token_id_fails_at_the_last_step(broker: TestBroker, version: int) -> None:
    def first() -> Any:
        with SaslClient(broker.listeners[1].port) as client:
            client.handshake("SCRAM-SHA-256", version)
            message = f"n,,n=nobody,r={NONCE},tokenauth=true".encode()
            if version == 0:
                return client.raw(message)
            return client.authenticate(message)[2]

    told = await asyncio.to_thread(first)
    assert told.startswith(f"r={NONCE}".encode())
    assert told.endswith(b",i=4096")


async def test_early_client_messages_wait_for_the_token_credential(broker: TestBroker) -> None:
    token = await create(broker)

    def first() -> list[Any]:
        told = []
        for _ in range(2):
            with SaslClient(broker.listeners[1].port) as client:
                client.handshake("SCRAM-SHA-256", 0)
                answer = client.raw(f"n,,n={token.token_id},r={NONCE},tokenauth=true".encode())
                told.append(dict(part.split("=", 1) for part in answer.decode().split(",")))
        return told

    told = await asyncio.to_thread(first)

    assert told[0]["s"] == told[1]["s"], "both are of the one credential"
    assert told[0]["r"] != told[1]["r"]


async def test_keys_are_derived_once_and_off_the_event_loop(
    broker: TestBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    token, loops = await create(broker), threading.current_thread()
    derived: list[threading.Thread] = []
    derive = hashlib.pbkdf2_hmac

    def note(*arguments: Any) -> bytes:
        if len(arguments[2]) == scram._NONCE_BYTES and threading.current_thread() is not client:
            derived.append(threading.current_thread())
        return bytes(derive(*arguments))

    client = threading.Thread()

    def log_in() -> int:
        nonlocal client
        client = threading.current_thread()
        told = 0
        for mechanism in (*HASHES, *HASHES):
            one, answer = by_token(broker, token, mechanism)
            one.__exit__()
            told += answer[0]
        return told

    monkeypatch.setattr(hashlib, "pbkdf2_hmac", note)
    assert 0 == await asyncio.to_thread(log_in)

    assert 2 == len(derived)
    assert loops not in derived


async def test_removed_token_no_longer_authenticates(broker: TestBroker) -> None:
    token = await create(broker)
    assert 0 == await outcome(broker, token)

    await ask(broker, "alice", expiry(token.hmac))

    assert E.SASL_AUTHENTICATION_FAILED == await outcome(broker, token)


async def outcome(broker: TestBroker, token: Any) -> int:
    def log_in() -> int:
        client, told = by_token(broker, token)
        with client:
            return int(told[0])

    return await asyncio.to_thread(log_in)


async def test_token_whose_owner_is_not_a_user_authenticates_nobody(broker: TestBroker) -> None:
    token = await create(broker, owner="Group:alice")

    assert E.SASL_AUTHENTICATION_FAILED == await outcome(broker, token)


# Time


async def test_expired_token_can_only_be_removed(broker: TestBroker) -> None:
    token = await create(broker, "alice", lifetime_ms=60_000)
    await clock_of(broker).pass_time(60.0)
    assert 0 == await outcome(broker, token), "its last moment counts"
    await clock_of(broker).pass_time(0.001)

    answers = await ask(broker, "alice", renewal(token.hmac), expiry(token.hmac, 5))
    assert [E.DELEGATION_TOKEN_EXPIRED] * 2 == [it.error_code for it in answers]
    assert E.SASL_AUTHENTICATION_FAILED == await outcome(broker, token)
    assert [token.token_id] == await ids_seen(broker, "alice")
    (removed,) = await ask(broker, "alice", expiry(token.hmac))
    assert 0 == removed.error_code


async def test_expired_tokens_are_removed_in_the_background(broker: TestBroker) -> None:
    short = await create(broker, lifetime_ms=60_000)
    long = await create(broker)
    await clock_of(broker).pass_time(3_599.0)
    assert [short.token_id, long.token_id] == await ids_seen(broker, "alice")

    await clock_of(broker).pass_time(1.0)

    kept = broker.inside.image.kept
    await until(lambda: kept.count(DelegationTokenRecord) == 1)
    assert [long.token_id] == await ids_seen(broker, "alice")
    (gone,) = await ask(broker, "alice", renewal(short.hmac))
    assert E.DELEGATION_TOKEN_NOT_FOUND == gone.error_code


async def test_session_of_a_token_ends_with_the_token(broker: TestBroker) -> None:
    token = await create(broker, lifetime_ms=60_000)
    client, told = await asyncio.to_thread(by_token, broker, token)
    assert 0 == told[0]
    with client:
        await clock_of(broker).pass_time(59.0)
        assert CLOSED != await asyncio.to_thread(metadata, client)
        await clock_of(broker).pass_time(1.0)
        assert CLOSED == await asyncio.to_thread(metadata, client)


async def test_session_reauthenticated_with_a_password_may_request_tokens(
    broker: TestBroker,
) -> None:
    """
    The principal and the mechanism are the same, and the client no longer uses a token.
    """

    salted = hashlib.pbkdf2_hmac("sha256", b"wonderland", b"salt", 4096)
    upsertion = ScramCredentialUpsertion(
        name="alice", mechanism=1, iterations=4096, salt=b"salt", salted_password=salted
    )

    token = await create(broker)
    client, _ = await asyncio.to_thread(by_token, broker, token)

    def go_on() -> list[int]:
        with SaslClient(broker.listeners[0].port) as admin:
            admin.ask(AlterUserScramCredentialsRequest(deletions=[], upsertions=[upsertion]), 0)
        codes = [client.ask(tokens_of(), 3).error_code]
        assert 0 == client.handshake("SCRAM-SHA-256")[0]
        assert 0 == client.scram("alice", "wonderland")[0]
        return [*codes, client.ask(tokens_of(), 3).error_code]

    with client:
        await clock_of(broker).pass_time(5.0)
        codes = await asyncio.to_thread(go_on)
    assert [E.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, 0] == codes


async def test_tokens_survive_a_restart() -> None:
    files = MemoryFiles()
    async with running(files, **OPTIONS) as broker:
        kept, removed = await create(broker, "alice", "User:bob"), await create(broker, "bob")
        await ask(broker, "bob", expiry(removed.hmac), renewal(kept.hmac, HOUR_MS))

    async with running(files, **OPTIONS) as broker:
        (answer,) = await ask(broker, "bob", tokens_of())
        assert [kept.token_id] == [token.token_id for token in answer.tokens]
        assert START_MS + HOUR_MS == answer.tokens[0].expiry_timestamp
        assert bytes(kept.hmac) == bytes(answer.tokens[0].hmac)
        assert 0 == await outcome(broker, kept)
        (renewed,) = await ask(broker, "bob", renewal(kept.hmac))
        assert 0 == renewed.error_code


async def test_tokens_from_before_a_restart_stay_valid_when_others_change() -> None:
    files = MemoryFiles()
    async with running(files, **OPTIONS) as broker:
        kept = await create(broker)

    async with running(files, **OPTIONS) as broker:
        other = await create(broker)
        await ask(broker, "alice", expiry(other.hmac))
        broker.inside.delegation_tokens().hmac_of(other.token_id)
        (renewed,) = await ask(broker, "alice", renewal(kept.hmac))
        assert 0 == renewed.error_code


async def test_another_secret_key_gives_tokens_another_hmac() -> None:
    files = MemoryFiles()
    async with running(files, **OPTIONS) as broker:
        kept = await create(broker)

    async with running(files, **OPTIONS | {"delegation_token_secret_key": "another"}) as broker:
        assert E.SASL_AUTHENTICATION_FAILED == await outcome(broker, kept)
        (answer,) = await ask(broker, "alice", renewal(kept.hmac))
        assert E.DELEGATION_TOKEN_NOT_FOUND == answer.error_code
