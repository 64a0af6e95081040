"""
Delegation tokens of Apache Kafka and of Barnabas: the same answers to the same clients, and each
takes those that the other has left.
"""

from __future__ import annotations

import base64
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from barnabas.coordination.security.acl.bindings import (
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
)
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from barnabas.protocol.messages.create_delegation_token import CreateDelegationTokenRequest
from barnabas.protocol.messages.metadata import MetadataRequest
from tests.interop.differential.answers import differences
from tests.support.apache_kafka import java
from tests.support.both_brokers import BothBrokers
from tests.support.broker_process import BrokerProcess, free_port, wait_for
from tests.support.commands import run as command_run
from tests.support.java_programs import run_program
from tests.support.sasl_client import CLOSED, SaslClient
from tests.support.token_requests import expiry, new_token, renewal, tokens_of

pytestmark = pytest.mark.prove

LISTENER: Final = "SASL_PLAINTEXT"
PEOPLE: Final = ("alice", "bob", "carol", "dora")
HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
SETTINGS: Final = {
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        + " ".join(f'user_{name}="{name}"' for name in PEOPLE)
        + ";"
    ),
    **{
        f"listener.name.sasl_plaintext.{mechanism.lower()}.sasl.jaas.config": (
            "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        )
        for mechanism in HASHES
    },
    "delegation.token.secret.key": "a key of both",
    "delegation.token.max.lifetime.ms": "3600000",
    "delegation.token.expiry.time.ms": "600000",
}
AUTHORIZER: Final = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
PATIENCE: Final = 60.0
DAY_MS: Final = 86_400_000
HERE: Final = Path(__file__).parent


def entry(resource: ResourceType, operation: AclOperation, name: str, who: str) -> AclCreation:
    return AclCreation(
        resource_type=resource,
        resource_name=name,
        resource_pattern_type=PatternType.LITERAL,
        principal=f"User:{who}",
        host="*",
        operation=operation,
        permission_type=AclPermissionType.ALLOW,
    )


ENTRIES: Final = [
    entry(ResourceType.USER, AclOperation.CREATE_TOKENS, "User:bob", "alice"),
    entry(ResourceType.USER, AclOperation.DESCRIBE_TOKENS, "User:alice", "carol"),
    entry(ResourceType.DELEGATION_TOKEN, AclOperation.DESCRIBE, "*", "dora"),
]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BothBrokers]:
    directory = tmp_path_factory.mktemp("tokens")
    settings = {**SETTINGS, **AUTHORIZER}
    with BothBrokers.side_by_side(directory, settings, secured=[LISTENER]) as brokers:
        brokers.start()
        for broker in brokers:
            with SaslClient(broker.port) as client:
                answer = client.ask(CreateAclsRequest(creations=ENTRIES), 3)
                assert {0} == {result.error_code for result in answer.results}
        yield brokers


def logged_in(broker: BrokerProcess, name: str) -> SaslClient:
    client = SaslClient(broker.ports[LISTENER])
    client.log_in(name, name)
    return client


class Story:
    """
    What happens at one broker, in terms that are the same at another: times count from the
    creation of a token, and tokens are numbered.
    """

    def __init__(self, broker: BrokerProcess) -> None:
        self.broker = broker
        self.tokens: list[Any] = []
        self.told: list[Any] = []

    def ask(self, who: str, request: Any, version: int | None = None) -> Any:
        version = request.api.versions[-1] if version is None else version
        began = time.time() * 1000
        client = SaslClient(self.broker.port) if who == "-" else logged_in(self.broker, who)
        with client:
            answer = client.ask(request, version)
        if isinstance(request, CreateDelegationTokenRequest) and answer.error_code == 0:
            self.tokens.append(answer)
        self.told.append((type(request).__name__, version, who, self._plain(answer, began)))
        return answer

    def wait_for_all(self) -> None:
        """
        Apache Kafka's broker learns of a token a moment after its controller has answered.
        """
        alive = {token.token_id for token in self.tokens}

        def are_there() -> bool:
            with logged_in(self.broker, "dora") as client:
                answer = client.ask(tokens_of(), 3)
            return {token.token_id for token in answer.tokens} == alive

        wait_for(are_there, "all tokens", PATIENCE)

    def wait_for_end(self, hmac: bytes) -> None:
        """
        Likewise, it learns a moment later that a token has ended.
        """

        def has_ended() -> bool:
            with logged_in(self.broker, "dora") as client:
                answer = client.ask(tokens_of(), 3)
            now_ms = time.time() * 1000
            return all(
                token.expiry_timestamp < now_ms
                for token in answer.tokens
                if bytes(token.hmac) == hmac
            )

        wait_for(has_ended, "the end of a token", PATIENCE)

    def _plain(self, value: Any, began: float) -> Any:
        if isinstance(value, list):
            return sorted((self._plain(each, began) for each in value), key=repr)
        if not hasattr(value, "__slots__"):
            return value
        return {
            name: self._plain_field(name, getattr(value, name), began) for name in value.__slots__
        }

    def _plain_field(self, name: str, value: Any, began: float) -> Any:
        if "timestamp" in name and value > 0:
            return round((value - began) / 20_000)
        if name == "token_id":
            ids = [token.token_id for token in self.tokens]
            return ids.index(value) if value in ids else value
        if name == "hmac":
            secrets = [bytes(token.hmac) for token in self.tokens]
            return secrets.index(bytes(value)) if bytes(value) in secrets else bytes(value)
        return self._plain(value, began)


def the_life_of_tokens(story: Story) -> None:
    for version in (1, 2, 3):
        story.ask("alice", new_token("User:bob", "User:carol", "User:bob"), version)
    story.ask("alice", new_token(owner="User:bob", lifetime_ms=60_000))
    for lifetime_ms in (0, 1_800_000, 30 * DAY_MS, (1 << 63) - 1):
        story.ask("bob", new_token(lifetime_ms=lifetime_ms))
    story.wait_for_all()
    for who in PEOPLE:
        for version in (1, 2, 3):
            story.ask(who, tokens_of(), version)
        story.ask(who, tokens_of(["User:alice"]))
        story.ask(who, tokens_of(["User:bob", "User:nobody"]))
        story.ask(who, tokens_of(["Group:alice"]))
        story.ask(who, tokens_of([]))
    first, second = (bytes(token.hmac) for token in story.tokens[:2])
    for who in PEOPLE:
        for version in (1, 2):
            story.ask(who, renewal(first, 1_200_000), version)
            story.ask(who, renewal(second, 5 * DAY_MS), version)
            story.ask(who, expiry(first, 100_000), version)
    story.ask("bob", renewal(bytes(story.tokens[3].hmac)))
    story.ask("bob", expiry(bytes(story.tokens[3].hmac), (1 << 63) - 1))
    story.ask("alice", renewal(second, 0))
    story.ask("alice", renewal(second, (1 << 63) - 1))
    story.ask("alice", renewal(second, -(1 << 63)))


def what_is_refused(story: Story) -> None:
    story.ask("alice", new_token(owner="User:carol"))
    story.ask("alice", new_token(owner="Group:alice"))
    story.ask("alice", new_token("Group:bob"))
    story.ask("alice", new_token("Group:bob", owner="User:carol"))
    story.ask("alice", new_token("Group:bob", owner="User:alice"))
    nameless = CreateDelegationTokenRequest(
        owner_principal_type=None, owner_principal_name="bob", renewers=[], max_lifetime_ms=-1
    )
    story.ask("alice", nameless)
    for secret in (b"", b"x", b"y" * 64):
        for version in (1, 2):
            story.ask("alice", renewal(secret), version)
            story.ask("alice", expiry(secret), version)
    for version in (1, 2, 3):
        story.ask("-", new_token("Group:x"), version)
        story.ask("-", tokens_of(), version)
        story.ask("-", tokens_of([]), version)
    for version in (1, 2):
        story.ask("-", renewal(b""), version)
        story.ask("-", expiry(b""), version)


def how_tokens_end(story: Story) -> None:
    story.ask("carol", new_token("User:dora", lifetime_ms=1))
    story.ask("carol", new_token("User:dora"))
    story.wait_for_all()
    short, long = (bytes(token.hmac) for token in story.tokens)
    time.sleep(0.1)
    story.ask("carol", renewal(short))
    story.ask("bob", renewal(short))
    story.ask("carol", expiry(short, 1000))
    story.ask("bob", expiry(short, 1000))
    story.ask("dora", expiry(short))
    story.ask("dora", expiry(long, 0))
    story.wait_for_end(long)
    story.ask("dora", expiry(long, 0))
    story.ask("carol", expiry(long, -5))

    def are_gone() -> bool:
        with logged_in(story.broker, "carol") as client:
            return not client.ask(tokens_of(["User:carol"]), 3).tokens

    wait_for(are_gone, "the end of all tokens", PATIENCE)
    story.ask("carol", renewal(short))
    story.ask("carol", expiry(long))
    story.ask("carol", tokens_of(["User:carol"]))


@pytest.mark.parametrize("tell", [what_is_refused, how_tokens_end, the_life_of_tokens])
def test_token_requests_are_answered_as_in_kafka(both: BothBrokers, tell: Any) -> None:
    stories = [Story(broker) for broker in both]
    for story in stories:
        tell(story)
        clean_up(story)
    kafka, barnabas = (story.told for story in stories)
    for theirs, ours in zip(kafka, barnabas, strict=True):
        assert [] == list(differences(theirs[3], ours[3])), theirs[:3]


def clean_up(story: Story) -> None:
    for token in story.tokens:
        for who in (token.principal_name, *PEOPLE):
            with logged_in(story.broker, who) as client:
                client.ask(expiry(bytes(token.hmac)), 2)
    story.tokens.clear()
    story.wait_for_all()


def by_token(broker: BrokerProcess, token: Any, mechanism: str, **wrong: str) -> list[Any]:
    """
    The outcome of an authentication, and what the client may ask for then.
    """
    with SaslClient(broker.ports[LISTENER]) as client:
        client.handshake(mechanism)
        told = client.scram(
            token.token_id,
            wrong.get("password", base64.b64encode(bytes(token.hmac)).decode()),
            name=HASHES[mechanism],
            extension=wrong.get("extension", ",tokenauth=true"),
        )
        if told == CLOSED or told[0]:
            return [told, client.end()]
        requests = (new_token(), renewal(bytes(token.hmac)), expiry(bytes(token.hmac)), tokens_of())
        codes = [client.ask(each, each.api.versions[-1]).error_code for each in requests]
        asked = MetadataRequest(topics=[], include_cluster_authorized_operations=True)
        may = client.ask(asked, 9).cluster_authorized_operations
        return [told, round(client.session_lifetime_ms / 20_000), codes, may]


@pytest.mark.parametrize("mechanism", HASHES)
def test_token_authenticates_its_owner_in_both_brokers(both: BothBrokers, mechanism: str) -> None:
    seen = []
    for broker in both:
        story = Story(broker)
        token = story.ask("alice", new_token(owner="User:bob", lifetime_ms=200_000))
        story.wait_for_all()
        seen.append(
            [
                by_token(broker, token, mechanism),
                *(by_token(broker, token, mechanism, password=it) for it in ("", "guess")),
                *(by_token(broker, token, mechanism, extension=it) for it in EXTENSIONS),
            ]
        )
        clean_up(story)
    kafka, barnabas = seen
    assert kafka == barnabas
    assert [E_NOT_ALLOWED] * 4 == barnabas[0][2]


EXTENSIONS: Final = ("", ",tokenauth=false", ",tokenauth=trues", ",tokenauth=TRUE")
E_NOT_ALLOWED: Final = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


def test_java_client_logs_in_with_a_token(both: BothBrokers) -> None:
    topic = entry(ResourceType.TOPIC, AclOperation.ALL, "of-alice", "alice")
    lines: list[str] = []
    for broker in both:
        story = Story(broker)
        token = story.ask("alice", new_token())
        story.wait_for_all()
        with SaslClient(broker.port) as client:
            client.ask(CreateAclsRequest(creations=[topic]), 3)
        for mechanism in HASHES:
            lines += [
                "topic=of-alice",
                f"bootstrap.servers=127.0.0.1:{broker.ports[LISTENER]}",
                f"security.protocol={LISTENER}",
                f"sasl.mechanism={mechanism}",
                "auto.offset.reset=earliest",
                "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required"
                f' username="{token.token_id}"'
                f' password="{base64.b64encode(bytes(token.hmac)).decode()}" tokenauth="true";',
                "",
            ]

    said = run_program(
        HERE / "java" / "Secured.java", lines=[f"{line}\n" for line in lines], level="off"
    ).splitlines()

    assert said[0] == "ok" == said[2]
    # What the second client reads begins with the records of the first.
    assert [said[1][:20]] == [said[3][:20]]


def test_delegation_token_tool_prints_the_same(both: BothBrokers, tmp_path: Path) -> None:
    config = tmp_path / "client.properties"
    config.write_text(
        f"security.protocol={LISTENER}\nsasl.mechanism=PLAIN\n"
        "sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required"
        ' username="alice" password="alice";\n'
    )

    def run(broker: BrokerProcess, *arguments: str) -> str:
        command = java(
            "org.apache.kafka.tools.DelegationTokenCommand",
            *("--bootstrap-server", f"127.0.0.1:{broker.ports[LISTENER]}"),
            *("--command-config", str(config), *arguments),
        )
        return command_run(*command).stdout

    seen = []
    for broker in both:
        made = run(
            broker, "--create", "--max-life-time-period", "-1", "--renewer-principal", "User:bob"
        )
        secret = next(word for word in made.split() if word.endswith("=="))
        time.sleep(0.5)
        texts = [
            made,
            run(broker, "--describe", "--owner-principal", "User:alice"),
            run(broker, "--renew", "--renew-time-period", "-1", "--hmac", secret),
            run(broker, "--expire", "--expiry-time-period", "-1", "--hmac", secret),
        ]
        time.sleep(0.5)
        texts.append(run(broker, "--describe", "--owner-principal", "User:alice"))
        seen.append([likeness(text) for text in texts])
    kafka, barnabas = seen
    assert kafka == barnabas
    assert "User:bob" in barnabas[1]


def likeness(text: str) -> str:
    """
    The text without what is random, and without times. Tokens come in any order.
    """
    text = re.sub(r"[A-Za-z0-9+/]{86}==", "HMAC", text)
    text = re.sub(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d", "TIME", text)
    text = re.sub(r"[A-Za-z0-9_-]{22}", "ID", text)
    return "\n".join(sorted(re.sub(r"[ \t]+", " ", text).split("\n")))


def test_each_broker_accepts_the_tokens_that_the_other_has_left(tmp_path: Path) -> None:
    made: list[Any] = []
    with BothBrokers.in_turn(tmp_path, SETTINGS) as both:
        both.kafka.ports = both.barnabas.ports = {LISTENER: free_port()}
        for first, second in ((both.kafka, both.barnabas), (both.barnabas, both.kafka)):
            first.start()
            with logged_in(first, "alice") as client:
                made.append(client.ask(new_token("User:bob"), 3))
                assert 0 == made[-1].error_code
                made.append(client.ask(new_token("User:bob"), 3))
                time.sleep(0.5)
                assert 0 == client.ask(expiry(bytes(made.pop().hmac)), 2).error_code
            with logged_in(first, "bob") as client:
                ended = client.ask(renewal(bytes(made[-1].hmac), 300_000), 2).expiry_timestamp_ms
            first.stop()

            second.start()
            expected = {token.token_id: bytes(token.hmac) for token in made}

            def seen(broker: BrokerProcess = second) -> dict[str, Any]:
                with logged_in(broker, "alice") as client:
                    return {it.token_id: it for it in client.ask(tokens_of(), 3).tokens}

            wait_for(lambda: len(seen()) == len(made), "the tokens", PATIENCE)
            found = seen()
            assert expected == {token_id: bytes(it.hmac) for token_id, it in found.items()}
            last = found[made[-1].token_id]
            assert ended == last.expiry_timestamp
            assert ["bob"] == [renewer.principal_name for renewer in last.renewers]
            for token in made:
                for mechanism in HASHES:
                    assert 0 == by_token(second, token, mechanism)[0][0]
            with logged_in(second, "bob") as client:
                for token in made:
                    assert 0 == client.ask(renewal(bytes(token.hmac)), 2).error_code
            second.stop()
