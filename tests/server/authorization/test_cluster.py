"""
What a client may see and change of the cluster, and of configs. The answers are those of Apache
Kafka 4.3.1 (``KafkaApis``, ``ControllerApis``, ``ConfigHelper``).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest

from barnabas.protocol.codec.schema import Message
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.describe_cluster import DescribeClusterRequest
from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.protocol.messages.unregister_broker import UnregisterBrokerRequest
from barnabas.server.security.acl.bindings import CLUSTER_NAME
from barnabas.server.security.acl.permissions import (
    ALTER_CLUSTER,
    ALTER_CONFIGS_CLUSTER,
    ALTER_CONFIGS_GROUP,
    ALTER_CONFIGS_TOPIC,
    CLUSTER_ACTION,
    CREATE_CLUSTER,
    DESCRIBE_CLUSTER,
    DESCRIBE_CONFIGS_CLUSTER,
    DESCRIBE_CONFIGS_GROUP,
    DESCRIBE_CONFIGS_TOPIC,
    DESCRIBE_TOPIC,
    Permission,
)
from tests.support.acls import AUTHORIZER, Rights, allow, allow_only, create_topics
from tests.support.cluster_requests import (
    election,
    features,
    moves,
    moving,
    new_credentials,
    new_quotas,
    quorum,
    quotas,
    relocation,
    resources,
    sizes,
    users,
)
from tests.support.config_requests import (
    BROKER,
    GROUP,
    LOGGER,
    METRICS,
    SET,
    TOPIC,
    change_all,
    describe,
    replace,
)
from tests.support.server import TestBroker
from tests.support.wire_client import WireClient

E = ErrorCode
pytestmark = pytest.mark.broker(**AUTHORIZER)

NOTHING: Final[Rights] = ()
CLUSTER_REFUSED: Final = E.CLUSTER_AUTHORIZATION_FAILED
TOPIC_REFUSED: Final = E.TOPIC_AUTHORIZATION_FAILED
GROUP_REFUSED: Final = E.GROUP_AUTHORIZATION_FAILED


def told(value: Any) -> Iterator[tuple[int, bool]]:
    """
    Each error of an answer, and whether a message comes with it.
    """
    if isinstance(value, list):
        for each in value:
            yield from told(each)
    elif getattr(value, "error_code", 0):
        yield value.error_code, getattr(value, "error_message", None) is not None
    if hasattr(value, "__slots__"):
        for name in value.__slots__:
            yield from told(getattr(value, name))


# APIs that a client may use or not

ONCE: Final = [(CLUSTER_REFUSED, True)]
WITHOUT_MESSAGE: Final = [(CLUSTER_REFUSED, False)]


@pytest.mark.parametrize(
    ("request_", "version", "permission", "errors"),
    [
        (sizes(None), 1, DESCRIBE_CLUSTER, []),
        (sizes([("t", [0])]), 2, DESCRIBE_CLUSTER, []),
        (sizes([("t", [0])]), 5, DESCRIBE_CLUSTER, WITHOUT_MESSAGE),
        (quorum(("__cluster_metadata", [0])), 2, DESCRIBE_CLUSTER, ONCE),
        (moving(), 0, DESCRIBE_CLUSTER, ONCE),
        (moving([("t", [0])]), 0, DESCRIBE_CLUSTER, ONCE),
        (users(), 0, DESCRIBE_CLUSTER, WITHOUT_MESSAGE),
        (users("a", "b"), 0, DESCRIBE_CLUSTER, WITHOUT_MESSAGE * 3),
        (relocation(("/data", "t", 0), ("/data", "u", 0)), 2, ALTER_CLUSTER, WITHOUT_MESSAGE * 2),
        (moves(("t", 0, [1]), ("t", 1, [1])), 1, ALTER_CLUSTER, ONCE * 3),
        (moves(("t", 0, [1])), 0, ALTER_CLUSTER, ONCE * 2),
        (election(0, ("t", [0, 1])), 0, ALTER_CLUSTER, ONCE * 2),
        (election(0, ("t", [0, 1])), 2, ALTER_CLUSTER, WITHOUT_MESSAGE + ONCE * 2),
        (election(0, everything=True), 2, ALTER_CLUSTER, WITHOUT_MESSAGE),
        (new_credentials(("a", 1, 4096), without=[("b", 1)]), 0, ALTER_CLUSTER, ONCE * 2),
        (features(("kraft.version", 1, 1)), 0, ALTER_CLUSTER, ONCE),
        (features(("kraft.version", 1, 1)), 2, ALTER_CLUSTER, ONCE),
        (UnregisterBrokerRequest(broker_id=9), 0, ALTER_CLUSTER, ONCE),
        (quotas(), 1, DESCRIBE_CONFIGS_CLUSTER, WITHOUT_MESSAGE),
        (new_quotas(({"user": "a"}, []), ({"user": "b"}, [])), 1, ALTER_CONFIGS_CLUSTER, ONCE * 2),
        (resources(), 0, DESCRIBE_CONFIGS_CLUSTER, WITHOUT_MESSAGE),
        (resources(TOPIC), 1, DESCRIBE_CONFIGS_CLUSTER, WITHOUT_MESSAGE),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "api") else "",
)
async def test_an_api_of_the_cluster_needs_its_permission(
    broker: TestBroker, request_: Any, version: int, permission: Permission, errors: Any
) -> None:
    async with await broker.client() as client:
        refused = await client.ask(request_, version)
        await allow(broker, permission, CLUSTER_NAME)
        allowed = await client.ask(request_, version)

    assert errors == list(told(refused))
    assert CLUSTER_REFUSED not in [code for code, _ in told(allowed)]


@pytest.mark.parametrize("version", [1, 2, 3, 5])
async def test_log_directories_are_left_out_for_who_may_not_describe_the_cluster(
    broker: TestBroker, client: WireClient, version: int
) -> None:
    refused = await client.ask(sizes(None), version)
    await allow(broker, DESCRIBE_CLUSTER, CLUSTER_NAME)
    allowed = await client.ask(sizes(None), version)

    assert [] == refused.results
    assert [0] == [result.error_code for result in allowed.results]


# DescribeCluster, Metadata


@pytest.mark.parametrize(
    ("acls", "operations"),
    [
        (NOTHING, 0),
        (((CREATE_CLUSTER, CLUSTER_NAME),), 0),
        (((DESCRIBE_CLUSTER, CLUSTER_NAME),), 1 << DESCRIBE_CLUSTER.operation),
        (
            ((ALTER_CLUSTER, CLUSTER_NAME),),
            1 << ALTER_CLUSTER.operation | 1 << DESCRIBE_CLUSTER.operation,
        ),
    ],
)
async def test_who_may_describe_the_cluster_hears_what_it_may_do_with_it(
    broker: TestBroker, client: WireClient, acls: Rights, operations: int
) -> None:
    await allow_only(broker, acls)
    cluster = DescribeClusterRequest(include_cluster_authorized_operations=True)
    metadata = MetadataRequest(topics=[], include_cluster_authorized_operations=True)

    answers = [await client.ask(cluster, 1), await client.ask(metadata, 9)]

    assert [operations] * 2 == [answer.cluster_authorized_operations for answer in answers]
    assert [1, 1] == [len(answer.brokers) for answer in answers]


# Configs


EVERY: Final = (
    (TOPIC, "t"),
    (TOPIC, "no"),
    (BROKER, "1"),
    (LOGGER, "1"),
    (METRICS, "m"),
    (GROUP, "g"),
)
REFUSALS: Final = {
    TOPIC: TOPIC_REFUSED,
    GROUP: GROUP_REFUSED,
    BROKER: CLUSTER_REFUSED,
    LOGGER: CLUSTER_REFUSED,
    METRICS: CLUSTER_REFUSED,
}
UNKNOWN: Final = E.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize(
    ("acls", "allowed"),
    [
        (NOTHING, []),
        (((DESCRIBE_TOPIC, "*"), (DESCRIBE_CLUSTER, CLUSTER_NAME)), []),
        (((DESCRIBE_CONFIGS_TOPIC, "t"),), [(TOPIC, "t")]),
        (((ALTER_CONFIGS_TOPIC, "*"),), [(TOPIC, "t"), (TOPIC, "no")]),
        (((DESCRIBE_CONFIGS_GROUP, "g"),), [(GROUP, "g")]),
        (
            ((DESCRIBE_CONFIGS_CLUSTER, CLUSTER_NAME),),
            [(BROKER, "1"), (LOGGER, "1"), (METRICS, "m")],
        ),
    ],
)
async def test_configs_are_described_to_who_may_see_them(
    broker: TestBroker, client: WireClient, acls: Rights, allowed: list[tuple[int, str]]
) -> None:
    """
    What is refused comes last.
    """
    await create_topics(broker, {"t": 1})
    await allow_only(broker, acls)
    request = describe(*EVERY[0])
    for each in EVERY[1:]:
        request.resources.extend(describe(*each).resources)

    answer = await client.ask(request, 4)

    refused = [each for each in EVERY if each not in allowed]
    assert [
        *((each, UNKNOWN if each == (TOPIC, "no") else 0) for each in allowed),
        *((each, REFUSALS[each[0]]) for each in refused),
    ] == [((it.resource_type, it.resource_name), it.error_code) for it in answer.results]
    last = answer.results[len(allowed) :]
    assert all(it.error_message and not it.configs for it in last)


CHANGES: Final = {
    TOPIC: ("retention.ms", SET, "1000"),
    BROKER: ("log.cleaner.threads", SET, "2"),
    LOGGER: ("root", SET, "INFO"),
    METRICS: ("interval.ms", SET, "5000"),
    GROUP: ("consumer.session.timeout.ms", SET, "50000"),
}


@pytest.mark.parametrize(
    ("acls", "allowed"),
    [
        (NOTHING, []),
        (((DESCRIBE_CONFIGS_TOPIC, "*"), (ALTER_CLUSTER, CLUSTER_NAME)), []),
        (((ALTER_CONFIGS_TOPIC, "t"),), [(TOPIC, "t")]),
        (((ALTER_CONFIGS_TOPIC, "*"),), [(TOPIC, "t"), (TOPIC, "no")]),
        (((ALTER_CONFIGS_GROUP, "g"),), [(GROUP, "g")]),
        (
            ((ALTER_CONFIGS_CLUSTER, CLUSTER_NAME), (CLUSTER_ACTION, CLUSTER_NAME)),
            [(BROKER, "1"), (LOGGER, "1"), (METRICS, "m")],
        ),
    ],
)
async def test_configs_are_changed_by_who_may_change_them(
    broker: TestBroker, client: WireClient, acls: Rights, allowed: list[tuple[int, str]]
) -> None:
    """
    A resource that is refused does not keep the others from their changes.
    """
    await create_topics(broker, {"t": 1})
    await allow_only(broker, acls)
    wanted = [(kind, name, [CHANGES[kind]]) for kind, name in EVERY]

    answer = await client.ask(change_all(*wanted, validate=True), 1)

    codes = {each: REFUSALS[each[0]] for each in EVERY}
    codes |= {each: UNKNOWN if each == (TOPIC, "no") else E.NONE for each in allowed}
    assert codes == {(it.resource_type, it.resource_name): it.error_code for it in answer.responses}
    assert all(
        (it.error_message is None) == (it.error_code == 0 or it.resource_type == LOGGER)
        for it in answer.responses
    )


@pytest.mark.parametrize("is_allowed", [True, False])
@pytest.mark.parametrize("is_old", [True, False])
async def test_a_refused_change_is_not_made(
    broker: TestBroker, client: WireClient, is_allowed: bool, is_old: bool
) -> None:
    await create_topics(broker, {"t": 1})
    if is_allowed:
        await allow(broker, ALTER_CONFIGS_TOPIC, "t")
    request: Message = change_all((TOPIC, "t", [("retention.ms", SET, "77")]))
    if is_old:
        request = replace(TOPIC, "t", ("retention.ms", "77"))

    answer = await client.ask(request, 2 if is_old else 1)

    assert [0 if is_allowed else TOPIC_REFUSED] == [it.error_code for it in answer.responses]
    log = broker.inside.partitions.expect("t", 0).log
    assert (77 if is_allowed else 604_800_000) == log.config.retention_ms


@pytest.mark.parametrize(
    ("kind", "name", "changes"),
    [
        (TOPIC, "t", [("retention.ms", SET, "1"), ("retention.ms", SET, "2")]),
        (TOPIC, "t", [("retention.ms", SET, None)]),
        (99, "t", []),
        (BROKER, "7", [CHANGES[BROKER]]),
        (BROKER, "1", [("node.id", SET, "5")]),
        (BROKER, "1", [("log.cleaner.threads", 9, "2")]),
    ],
)
async def test_what_is_wrong_with_a_change_may_come_before_permissions(
    client: WireClient, kind: int, name: str, changes: Any
) -> None:
    answer = await client.ask(change_all((kind, name, changes)), 1)

    assert [E.INVALID_REQUEST] == [it.error_code for it in answer.responses]


@pytest.mark.parametrize(
    ("kind", "name", "changes"),
    [
        (TOPIC, "t", [("retention.ms", 9, "1")]),
        (TOPIC, "t", [("no.such.option", SET, "1")]),
        (METRICS, "", [("no.such.option", SET, "1")]),
        (LOGGER, "7", [("no.such.logger", 9, "1")]),
        (BROKER, "", [("min.insync.replicas", SET, "1")]),
    ],
)
async def test_permissions_come_before_what_else_is_wrong_with_a_change(
    client: WireClient, kind: int, name: str, changes: Any
) -> None:
    answer = await client.ask(change_all((kind, name, changes)), 1)

    assert [REFUSALS[kind]] == [it.error_code for it in answer.responses]
