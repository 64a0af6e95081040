"""
Principals with one permission each, and some with several, ask for everything in every version:
Apache Kafka and Barnabas allow, refuse and hide the same.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Self, cast

import pytest

from barnabas.coordination.security.acl.bindings import (
    CLUSTER_NAME,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
)
from barnabas.coordination.security.acl.permissions import SUPPORTED
from barnabas.protocol import apis
from barnabas.protocol.codec.schema import Message, replace
from barnabas.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from barnabas.protocol.messages.create_topics import CreateTopicsRequest
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest
from barnabas.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
)
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from tests.interop.differential.answers import Reader, differences
from tests.interop.differential.sides import Side
from tests.support.authorization_requests import DOOMED, MAKERS, OPEN, OTHER, Ids
from tests.support.both_brokers import BothBrokers
from tests.support.broker_process import BrokerProcess, wait_for
from tests.support.cluster_requests import acls, no_acl
from tests.support.group_requests import commit_request, coordinator_request
from tests.support.sasl_client import SILENT, SaslClient
from tests.support.server import metadata_request
from tests.support.topic_requests import creatable

pytestmark = pytest.mark.prove

AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
LISTENER: Final = "SASL_PLAINTEXT"
ALL: Final = AclOperation.ALL
TRANSACTIONAL_ID: Final = ResourceType.TRANSACTIONAL_ID
OF_CLIENTS: Final = (ResourceType.TOPIC, ResourceType.GROUP, TRANSACTIONAL_ID)
METADATA: Final = 12


def entry(
    resource_type: ResourceType,
    operation: AclOperation,
    name: str = OPEN,
    *,
    prefixed: bool = False,
    deny: bool = False,
    host: str = "*",
    principal: str = "",
) -> AclCreation:
    return AclCreation(
        resource_type=resource_type,
        resource_name=CLUSTER_NAME if resource_type == ResourceType.CLUSTER else name,
        resource_pattern_type=PatternType.PREFIXED if prefixed else PatternType.LITERAL,
        principal=principal,
        host=host,
        operation=operation,
        permission_type=AclPermissionType.DENY if deny else AclPermissionType.ALLOW,
    )


def everything(name: str = "*", **options: Any) -> list[AclCreation]:
    return [entry(kind, ALL, name, **options) for kind in (*OF_CLIENTS, ResourceType.CLUSTER)]


def with_one_permission() -> Iterator[tuple[str, list[AclCreation]]]:
    operations = {kind: [each.operation for each in SUPPORTED[kind]] for kind in SUPPORTED}
    operations[TRANSACTIONAL_ID] = [AclOperation.WRITE, AclOperation.DESCRIBE]
    for kind, some in operations.items():
        for operation in some:
            entries = [entry(kind, operation)]
            if kind == ResourceType.TOPIC:
                entries.append(entry(kind, operation, DOOMED))
            yield f"{kind.name}-{operation.name}".lower().replace("_", "-"), entries


PRINCIPALS: Final[Mapping[str, list[AclCreation]]] = {
    "nobody": [],
    **dict(with_one_permission()),
    "everything": everything(),
    "elsewhere": everything(host="10.0.0.1"),
    "here": everything(host="127.0.0.1"),
    "prefixed": everything("o", prefixed=True),
    "reader": [entry(kind, AclOperation.READ) for kind in OF_CLIENTS],
    "writer": [
        entry(ResourceType.TOPIC, AclOperation.WRITE),
        entry(TRANSACTIONAL_ID, AclOperation.WRITE),
        entry(ResourceType.GROUP, AclOperation.READ),
    ],
    "copier": [
        entry(ResourceType.TOPIC, AclOperation.READ),
        entry(TRANSACTIONAL_ID, AclOperation.WRITE),
        entry(ResourceType.GROUP, AclOperation.READ),
    ],
    "creator": [
        entry(ResourceType.TOPIC, AclOperation.CREATE, "open-", prefixed=True),
        entry(ResourceType.TOPIC, AclOperation.DESCRIBE_CONFIGS, "open-", prefixed=True),
    ],
    "deleter": [entry(ResourceType.GROUP, AclOperation.DELETE, "*")],
    "denied-prefix-of-some": [
        entry(ResourceType.TOPIC, AclOperation.WRITE),
        entry(ResourceType.TOPIC, AclOperation.WRITE, "op", prefixed=True, deny=True),
    ],
    "denied-read": [
        *everything(),
        *(entry(kind, AclOperation.READ, deny=True) for kind in OF_CLIENTS),
    ],
    "denied-describe": [
        *everything(),
        *(entry(kind, AclOperation.DESCRIBE, deny=True) for kind in OF_CLIENTS),
        entry(ResourceType.CLUSTER, AclOperation.DESCRIBE, deny=True),
    ],
    "denied-prefix": [*everything(), *everything("ot", prefixed=True, deny=True)],
    "denied-all": [*everything(), *everything(deny=True)],
    "root": everything(deny=True),
}
"""
What each principal is allowed and denied. Root is a super user.
"""
WITHOUT_EACH_VERSION: Final = frozenset(PRINCIPALS) - {"nobody", "reader", "writer", "denied-all"}
"""
These ask in the first and the last version, and in those with another form than the one before.
"""
SETTINGS: Final = {
    "node.id": "1",
    "sasl.enabled.mechanisms": "PLAIN",
    "authorizer.class.name": AUTHORIZER,
    "super.users": "User:ANONYMOUS;User:root",
    "auto.create.topics.enable": "false",
    # Retention would remove records from one of them first.
    "log.initial.task.delay.ms": str(24 * 3600 * 1000),
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        + " ".join(f'user_{name}="{name}"' for name in PRINCIPALS)
        + ";"
    ),
}


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BothBrokers]:
    directory = tmp_path_factory.mktemp("authorization")
    with BothBrokers.side_by_side(directory, SETTINGS, secured=[LISTENER]) as brokers:
        brokers.start()
        for broker in brokers:
            prepare(broker)
        yield brokers


def prepare(broker: BrokerProcess) -> None:
    """
    Topics, a group, a transactional id, and the entries of all principals.
    """
    creations = [
        replace(each, principal=f"User:{name}")
        for name, entries in PRINCIPALS.items()
        for each in entries
    ]
    with SaslClient(broker.port) as client:
        create(client, OPEN, OTHER, DOOMED)
        for kind in (0, 1):
            until_served(client, coordinator_request(OPEN, key_type=kind), 4)
        for name in (OPEN, OTHER):
            begin = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000)
            until_served(client, begin, 4)
            for topic in (OPEN, OTHER):
                until_served(client, commit_request(name, topic, {0: 1}), 8)
        answer = client.ask(CreateAclsRequest(creations=creations), 3)
        assert {0} == {result.error_code for result in answer.results}
        wait_for(lambda: entries_of(client) == len(creations), "the entries", 60)


def until_served(client: SaslClient, request: Message, version: int) -> None:
    what = type(request).__name__
    wait_for(lambda: codes_in(plain(client.ask(request, version), version)) <= {0}, what, 60)


def codes_in(value: Any) -> set[int]:
    if isinstance(value, list):
        return set().union(*map(codes_in, value))
    if not isinstance(value, dict):
        return set()
    own = {code for name, code in value.items() if name.endswith("error_code")}
    return own.union(*map(codes_in, value.values()))


EVERY_ENTRY: Final = acls()


def entries_of(client: SaslClient) -> int:
    return sum(len(resource.acls) for resource in client.ask(EVERY_ENTRY, 3).resources)


def create(client: SaslClient, *names: str) -> None:
    client.ask(CreateTopicsRequest(topics=[creatable(name) for name in names]), 6)
    wait_for(lambda: ids_of(client, names) is not None, "the topics", 60)


def ids_of(client: SaslClient, names: tuple[str, ...]) -> Ids | None:
    answer = client.ask(metadata_request(*names), METADATA)
    found = {topic.name: topic.topic_id for topic in answer.topics if not topic.error_code}
    is_led = all(not p.error_code for topic in answer.topics for p in topic.partitions)
    return found if len(found) == len(names) and is_led else None


def logged_in(broker: BrokerProcess, name: str) -> SaslClient:
    client = SaslClient(broker.ports[LISTENER])
    client.log_in(name, name)
    return client


def asked_versions(request: type[Message], principal: str) -> list[int]:
    every = list(request.api.versions)
    if principal not in WITHOUT_EACH_VERSION:
        return every
    return sorted({every[0], every[-1], *(each for each in every if each in (3, 4, 8))})


def plain(answer: Any, version: int) -> Any:
    """
    An answer without what differs for another reason than who asks.
    """
    if isinstance(answer, str):
        return answer
    reader = Reader(Side(cast(Any, None)), started_ms=int((time.time() - 1800) * 1000))
    return leveled(reader.message(answer, version))


OF_STATES: Final = frozenset(
    api.key
    for api in (
        *(apis.SHARE_FETCH, apis.SHARE_ACKNOWLEDGE),
        *(apis.INITIALIZE_SHARE_GROUP_STATE, apis.READ_SHARE_GROUP_STATE),
        *(apis.WRITE_SHARE_GROUP_STATE, apis.DELETE_SHARE_GROUP_STATE),
        *(apis.READ_SHARE_GROUP_STATE_SUMMARY, apis.ALTER_SHARE_GROUP_OFFSETS),
        apis.DELETE_SHARE_GROUP_OFFSETS,
    )
)
"""
APIs that Kafka answers by whether the topic of share-partitions' states is there yet, and Barnabas
creates at the first use. Who may use them is tested with those of all APIs.
"""

ELSEWHERE_COMPARED: Final = frozenset(
    (
        *("producer_id", "configs", "controller_id", "records", "replica_nodes", "log_dirs"),
        *("nodes", "high_watermark", "current_voters"),
    )
)
"""
Fields of which only whether they have a value is compared. Sentences have each broker's own words.
"""


def leveled(value: Any) -> Any:
    if isinstance(value, list):
        return sorted((leveled(each) for each in value), key=repr)
    if not isinstance(value, dict):
        return value
    return {name: _leveled_field(name, each) for name, each in value.items()}


def _leveled_field(name: str, value: Any) -> Any:
    if name in ELSEWHERE_COMPARED:
        return bool(value)
    if name.endswith("error_message"):
        return value and "..."
    return leveled(value)


class Asker:
    """
    A principal on one broker. It authenticates again if its connection is closed.
    """

    def __init__(self, broker: BrokerProcess, principal: str) -> None:
        self._broker = broker
        self._principal = principal
        self._root = SaslClient(broker.port)
        self._client = logged_in(broker, principal)
        self._ids = self._topic_ids()

    def _topic_ids(self) -> Ids:
        ids = ids_of(self._root, (OPEN, OTHER, DOOMED))
        assert ids is not None, "the topics are there"
        return ids

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for client in (self._client, self._root):
            client.__exit__()

    def ask(self, request: type[Message], version: int) -> list[Any]:
        """
        The plain answers to all requests of an API.
        """
        told = []
        for asked in MAKERS[request](version, self._ids):
            answer = self._client.ask(asked, version)
            told.append(plain(answer, version))
            if isinstance(answer, str):
                self._client.__exit__()
                self._client = logged_in(self._broker, self._principal)
        if request is DeleteTopicsRequest and 0 in codes_in(told):
            wait_for(lambda: ids_of(self._root, (DOOMED,)) is None, "the deletion", 60)
            create(self._root, DOOMED)
            self._ids = self._topic_ids()
        return told


@pytest.mark.parametrize("principal", PRINCIPALS)
def test_both_brokers_allow_refuse_and_hide_the_same(both: BothBrokers, principal: str) -> None:
    found = []
    with Asker(both.kafka, principal) as kafka, Asker(both.barnabas, principal) as barnabas:
        for request in MAKERS:
            if request.api.key in OF_STATES:
                continue
            for version in asked_versions(request, principal):
                answers = kafka.ask(request, version), barnabas.ask(request, version)
                name = f"{request.__name__.removesuffix('Request')} v{version}"
                found += [f"{name}: {each}" for each in differences(*answers)]

    assert found == [], "\n".join(found)


def test_each_broker_applies_the_acls_that_the_other_has_left(tmp_path: Path) -> None:
    """
    Entries made and removed by one broker count for the other, which starts on its directory.
    """
    settings = {"authorizer.class.name": AUTHORIZER, "super.users": "User:ANONYMOUS"}
    expected: list[AclCreation] = []
    with BothBrokers.in_turn(tmp_path, settings) as brokers:
        for number, broker in enumerate((brokers.kafka, brokers.barnabas) * 2):
            broker.start()
            with SaslClient(broker.port) as client:
                until_described(client, expected)
                who = f"User:{number},CN=x"
                topic = entry(
                    ResourceType.TOPIC, AclOperation.READ, "made", prefixed=True, principal=who
                )
                group = entry(
                    ResourceType.GROUP, ALL, "日本", deny=True, host="10.0.0.1", principal=who
                )
                user = entry(
                    ResourceType.USER, AclOperation.DESCRIBE_TOKENS, "User:a", principal=who
                )
                answer = client.ask(CreateAclsRequest(creations=[topic, group, user]), 3)
                assert [0, 0, 0] == [result.error_code for result in answer.results]
                until_described(client, [*expected, topic, group, user])
                answer = client.ask(no_acl(None, pattern_type_filter=PatternType.ANY), 3)
                assert 1 == len(answer.filter_results[0].matching_acls)
                expected += [group, user]
                until_described(client, expected)
            broker.stop()


def until_described(client: SaslClient, expected: list[AclCreation]) -> None:
    wanted = sorted(
        (
            *(int(it.resource_type), it.resource_name, int(it.resource_pattern_type)),
            *(it.principal, it.host, int(it.operation), int(it.permission_type)),
        )
        for it in expected
    )
    wait_for(lambda: described(client) == wanted, f"{len(wanted)} entries", 30)


def described(client: SaslClient) -> list[tuple[object, ...]]:
    return sorted(
        (
            *(resource.resource_type, resource.resource_name, resource.pattern_type),
            *(each.principal, each.host, each.operation, each.permission_type),
        )
        for resource in client.ask(EVERY_ENTRY, 3).resources
        for each in resource.acls
    )


def test_resource_names_that_begin_with_a_star_are_matched_exactly(both: BothBrokers) -> None:
    """
    Apache Kafka forgets the entries for all names (``acl-wildcard``).
    """
    codes = []
    for broker in both:
        with logged_in(broker, "everything") as client:
            codes.append(client.ask(coordinator_request("*x"), 4).coordinators[0].error_code)

    assert codes == [30, 0]


def test_acls_that_are_filters_are_refused_individually(both: BothBrokers) -> None:
    """
    Apache Kafka fails the whole request (``acl-numbers``).
    """
    creations = [
        entry(ResourceType.TOPIC, AclOperation.ANY, principal="User:x"),
        entry(ResourceType.TOPIC, AclOperation.READ, "another", principal="User:x"),
    ]
    codes = []
    for broker in both:
        with SaslClient(broker.port) as client:
            answer = client.ask(CreateAclsRequest(creations=creations), 3)
            codes.append([result.error_code for result in answer.results])

    assert codes == [[-1, -1], [42, 0]]


def test_deny_for_all_users_is_answered(both: BothBrokers) -> None:
    """
    Apache Kafka does not answer it (``unanswered``).
    """
    with logged_in(both.barnabas, "nobody") as client:
        assert 31 == client.ask(DescribeUserScramCredentialsRequest(users=None), 0).error_code
    with logged_in(both.kafka, "nobody") as client:
        client.send(DescribeUserScramCredentialsRequest(users=None), 0)
        assert SILENT == client.end(1.0)
