"""
A client that has not authenticated cannot find out which users and delegation tokens exist.
"""

from __future__ import annotations

import asyncio
import hmac
from collections import Counter
from typing import Any, Final

import pytest

from barnabas.coordination.cluster.image import MetadataImage
from barnabas.coordination.cluster.scram_credentials import (
    MOST_SHAPES,
    CredentialShapes,
    ScramMechanism,
)
from barnabas.coordination.security.sasl.credentials import TokenLogin, derived_credential
from barnabas.coordination.security.sasl.decoys import Decoys, ScramCredential, Shape, shape_of
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.internal_topics.metadata_records import (
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)
from barnabas.server.security.errors import AuthenticationFailed
from barnabas.server.security.sasl.scram import ScramSaslServer
from barnabas.testing.disks.memory import MemoryFiles
from tests.support.sasl_client import NONCE, SaslClient, add_scram_user
from tests.support.server import TestBroker, running
from tests.support.token_requests import new_token

PLAIN_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
OPTIONS: Final = {
    "listeners": "OPEN://127.0.0.1:0,S://127.0.0.1:0",
    "listener_security_protocol_map": "OPEN:PLAINTEXT,S:SASL_PLAINTEXT",
    "sasl_enabled_mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "listener_name_s_plain_sasl_jaas_config": f'{PLAIN_MODULE} required user_alice="alice";',
    "connection_failed_authentication_delay_ms": "0",
    "delegation_token_secret_key": "the key of the brokers",
}
MECHANISMS: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")
BY_TOKEN: Final = ",tokenauth=true"
BINARY: Final = Shape(16, 8192)
OF_KAFKA: Final = shape_of(b"1" + b"h" * 25, 4096)
NAMES: Final = [f"user {number}" for number in range(400)]


async def challenge(
    broker: TestBroker, name: str, mechanism: str = "SCRAM-SHA-256", extension: str = ""
) -> tuple[str, str]:
    """
    The salt and the iterations that the broker answers with.
    """

    def ask() -> tuple[str, str]:
        with SaslClient(broker.listeners[1].port) as client:
            client.handshake(mechanism)
            told = client.authenticate(f"n,,n={name},r={NONCE}{extension}".encode())
            values = dict(part.split("=", 1) for part in told[2].decode().split(","))
            return values["s"], values["i"]

    return await asyncio.to_thread(ask)


async def token_of(broker: TestBroker) -> str:
    def ask() -> Any:
        with SaslClient(broker.listeners[1].port) as client:
            client.log_in("alice", "alice")
            return client.ask(new_token(), 3)

    token = await asyncio.to_thread(ask)
    assert token.error_code == ErrorCode.NONE
    return str(token.token_id)


async def test_unknown_user_gets_the_same_salt_after_a_restart() -> None:
    files = MemoryFiles()
    seen = []
    for _ in range(2):
        async with running(files, **OPTIONS) as broker:
            seen.append([await challenge(broker, "nobody", each) for each in MECHANISMS])

    assert seen[0] == seen[1]
    assert seen[0][0] != seen[0][1]


async def test_metadata_log_may_have_a_directory_of_its_own() -> None:
    files = MemoryFiles()
    seen = set()
    for _ in range(2):
        directories = {"log_dirs": "/data/a,/data/b", "metadata_log_dir": "/data/meta"}
        async with running(files, **OPTIONS, **directories) as broker:
            seen.add(await challenge(broker, "nobody"))

    assert 1 == len(seen)


async def test_unknown_user_gets_another_salt_from_another_cluster() -> None:
    seen = set()
    for _ in range(2):
        async with running(**OPTIONS) as broker:
            seen.add(await challenge(broker, "nobody"))

    assert 2 == len(seen)


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_tokens_get_the_same_salt_after_a_restart_whether_they_exist_or_not(
    mechanism: str,
) -> None:
    files = MemoryFiles()
    async with running(files, **OPTIONS) as broker:
        names = (await token_of(broker), "A" * 22)
        before = [await challenge(broker, name, mechanism, BY_TOKEN) for name in names]
    async with running(files, **OPTIONS) as broker:
        after = [await challenge(broker, name, mechanism, BY_TOKEN) for name in names]

    assert before == after
    assert len(before[0][0]) == len(before[1][0])
    assert before[0][1] == before[1][1]


async def test_unknown_user_looks_like_the_users_there_are() -> None:
    async with running(**OPTIONS) as broker:
        await asyncio.to_thread(add_scram_user, broker.listeners[0].port, "carol", "secret")

        known = await challenge(broker, "carol")
        unknown = await challenge(broker, "karol")

    assert (len(known[0]), known[1]) == (len(unknown[0]), unknown[1])
    assert known[0] != unknown[0]


def test_shapes_of_unknown_users_are_distributed_like_those_of_users() -> None:
    decoys = Decoys(b"secret", lambda _mechanism: sorted([BINARY] * 3 + [OF_KAFKA]))

    made = [decoys.of_user("SCRAM-SHA-256", name) for name in NAMES]

    shapes = Counter(shape_of(each.salt, each.iterations) for each in made)
    assert {BINARY, OF_KAFKA} == set(shapes)
    assert 0.65 < shapes[BINARY] / len(NAMES) < 0.85


def test_unknown_users_stay_as_they_are_when_another_user_is_added() -> None:
    few, more = ([each] * 20 for each in (BINARY, OF_KAFKA))
    shapes = sorted([*few, *more])
    decoys = Decoys(b"secret", lambda _mechanism: shapes)
    before = [decoys.of_user("SCRAM-SHA-256", name) for name in NAMES]

    shapes = sorted([*shapes, BINARY])
    after = [decoys.of_user("SCRAM-SHA-256", name) for name in NAMES]

    changed = sum(one != other for one, other in zip(before, after, strict=True))
    assert changed < len(NAMES) / len(shapes) * 2


def test_shapes_of_some_users_stand_for_those_of_many() -> None:
    image = MetadataImage()
    for number in range(MOST_SHAPES + 200):
        image.apply(
            UserScramCredentialRecord(
                name=f"user {number}",
                mechanism=ScramMechanism.SCRAM_SHA_256,
                salt=b"s" * 16 if number < MOST_SHAPES else b"s" * 8,
                stored_key=b"",
                server_key=b"",
                iterations=8192,
            )
        )
    shapes = CredentialShapes(image)

    assert [BINARY] * MOST_SHAPES == shapes("SCRAM-SHA-256")
    assert [] == list(shapes("SCRAM-SHA-512"))
    image.apply(
        RemoveUserScramCredentialRecord(name="user 0", mechanism=ScramMechanism.SCRAM_SHA_256)
    )
    assert Shape(8, 8192) in shapes("SCRAM-SHA-256")


def test_salt_of_an_unknown_user_has_the_form_that_the_tools_of_kafka_give_it() -> None:
    salts = [Decoys(b"secret").of_user("SCRAM-SHA-256", name).salt for name in NAMES]

    assert len(NAMES) == len(set(salts))
    assert all(int(salt, 36) < 1 << 130 for salt in salts)
    # A number of 130 bits has 26 digits or fewer, and begins with 1 if it has 26.
    lengths = Counter(map(len, salts))
    assert {25, 26} <= set(lengths) <= {23, 24, 25, 26}
    assert {b"1"} == {salt[:1] for salt in salts if len(salt) == 26}


@pytest.mark.parametrize("extension", ["", BY_TOKEN])
def test_unknown_name_takes_the_steps_of_a_wrong_password(
    monkeypatch: pytest.MonkeyPatch, extension: str
) -> None:
    steps: list[str] = []
    for name in ("digest", "compare_digest"):
        work = getattr(hmac, name)

        def counted(*arguments: Any, _work: Any = work, _name: str = name) -> Any:
            steps.append(_name)
            return _work(*arguments)

        monkeypatch.setattr(hmac, name, counted)
    known = derived_credential("SCRAM-SHA-256", "secret", b"salt")

    def taken(credential: ScramCredential | None) -> list[str]:
        login = None if credential is None else TokenLogin("carol", 0, credential)
        server = ScramSaslServer("SCRAM-SHA-256", lambda _user: credential, lambda _id: login)
        steps.clear()
        told = server.evaluate(f"n,,n=carol,r={NONCE}{extension}".encode())
        nonce = told.split(b",")[0]
        proof = b"A" * 43 + b"="
        with pytest.raises(AuthenticationFailed):
            server.evaluate(b"c=biws," + nonce + b",p=" + proof)
        return list(steps)

    assert taken(known) == taken(None)
    assert "compare_digest" in steps
