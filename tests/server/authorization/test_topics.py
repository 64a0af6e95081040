"""
What a client may see, create, change and delete of topics. The answers are those of Apache Kafka
4.3.1 (``KafkaApis``, ``ControllerApis``).
"""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

import pytest

from barnabas.protocol.codec.schema import ZERO_UUID, Message
from barnabas.protocol.errors import ErrorCode
from barnabas.server.security.acl.bindings import CLUSTER_NAME
from barnabas.server.security.acl.permissions import (
    ALTER_TOPIC,
    CREATE_CLUSTER,
    CREATE_TOPIC,
    DELETE_CLUSTER,
    DELETE_TOPIC,
    DESCRIBE_CONFIGS_TOPIC,
    DESCRIBE_TOPIC,
    READ_TOPIC,
    SUPPORTED,
    WRITE_TOPIC,
)
from tests.support.acls import AUTHORIZER, Rights, allow, allow_only, create_topics
from tests.support.build import api_request
from tests.support.cluster_requests import topic_pages
from tests.support.config_requests import grow
from tests.support.server import TestBroker, metadata_request
from tests.support.topic_requests import creatable, delete_request
from tests.support.wire_client import WireClient

E = ErrorCode
pytestmark = pytest.mark.broker(**AUTHORIZER)

FORBIDDEN: Final = E.TOPIC_AUTHORIZATION_FAILED
UNKNOWN: Final = E.UNKNOWN_TOPIC_OR_PARTITION
NOTHING: Final[Rights] = ()
NOBODYS: Final = UUID(int=7)
NOT_REQUESTED: Final = -(2**31)


def topic_id(broker: TestBroker, name: str) -> UUID:
    topic = broker.inside.topics.get(name)
    assert topic is not None
    return topic.id


def exists(broker: TestBroker, name: str) -> bool:
    return name in broker.inside.topics


# Metadata


def described(*topics: str | UUID, create: bool = False) -> Message:
    return metadata_request(*topics, create=create, include_topic_authorized_operations=True)


@pytest.mark.parametrize(
    ("acls", "seen"),
    [
        (NOTHING, []),
        (((DESCRIBE_TOPIC, "t"),), ["t"]),
        (((WRITE_TOPIC, "t"), (READ_TOPIC, "u")), ["t", "u"]),
        (((CREATE_TOPIC, "*"), (CREATE_CLUSTER, CLUSTER_NAME)), []),
    ],
)
@pytest.mark.parametrize("version", [0, 13])
async def test_metadata_of_all_topics_has_those_that_the_client_may_describe(
    broker: TestBroker, client: WireClient, acls: Rights, seen: list[str], version: int
) -> None:
    await create_topics(broker, {"t": 1, "u": 1})
    await allow_only(broker, acls)

    answer = await client.ask(api_request("metadata", topics=None if version else []), version)

    assert seen == sorted(topic.name for topic in answer.topics)
    assert all(topic.error_code == 0 for topic in answer.topics)


async def test_metadata_does_not_say_whether_a_forbidden_topic_exists(
    broker: TestBroker, client: WireClient
) -> None:
    await create_topics(broker, {"t": 1, "__consumer_offsets": 1})
    names = ["t", "__consumer_offsets", "no", "__transaction_state", "not legal"]

    answer = await client.ask(described(*names, create=True), 10)

    assert {name: (FORBIDDEN, ZERO_UUID, False, [], NOT_REQUESTED) for name in names} == {
        topic.name: (
            topic.error_code,
            topic.topic_id,
            topic.is_internal,
            topic.partitions,
            topic.topic_authorized_operations,
        )
        for topic in answer.topics
    }
    assert not exists(broker, "no")


async def test_metadata_by_id_names_no_topic_that_is_forbidden(
    broker: TestBroker, client: WireClient
) -> None:
    await create_topics(broker, {"t": 1, "u": 1})
    await allow(broker, DESCRIBE_TOPIC, "t")
    t, u = topic_id(broker, "t"), topic_id(broker, "u")

    answer = await client.ask(metadata_request(t, u, NOBODYS), 13)

    assert {t: ("t", 0), u: (None, FORBIDDEN), NOBODYS: (None, E.UNKNOWN_TOPIC_ID)} == {
        topic.topic_id: (topic.name, topic.error_code) for topic in answer.topics
    }


@pytest.mark.parametrize(
    ("acls", "code", "is_internal"),
    [
        (((DESCRIBE_TOPIC, "__transaction_state"),), FORBIDDEN, True),
        (((CREATE_TOPIC, "__transaction_state"),), FORBIDDEN, False),
        (((CREATE_CLUSTER, CLUSTER_NAME),), FORBIDDEN, False),
        (((DESCRIBE_TOPIC, "*"), (CREATE_TOPIC, "__transaction_state")), 0, True),
        (((DESCRIBE_TOPIC, "*"), (CREATE_CLUSTER, CLUSTER_NAME)), 0, True),
    ],
)
async def test_metadata_creates_topics_that_the_client_may_create(
    broker: TestBroker, client: WireClient, acls: Rights, code: int, is_internal: bool
) -> None:
    await allow_only(broker, acls)

    answer = await client.ask(described("__transaction_state", create=True), 10)

    (topic,) = answer.topics
    assert (code, is_internal) == (topic.error_code, topic.is_internal)
    assert (code == 0) == exists(broker, "__transaction_state")


async def test_metadata_does_not_ask_who_may_create_where_nothing_is_created(
    broker: TestBroker, client: WireClient
) -> None:
    await allow(broker, DESCRIBE_TOPIC, "*")

    answer = await client.ask(described("no", "not legal"), 10)

    assert {"no": UNKNOWN, "not legal": E.INVALID_TOPIC_EXCEPTION} == {
        topic.name: topic.error_code for topic in answer.topics
    }


async def test_metadata_says_what_the_client_may_do(broker: TestBroker, client: WireClient) -> None:
    await create_topics(broker, {"t": 1})
    await allow_only(broker, ((READ_TOPIC, "t"), (DELETE_TOPIC, "*")))

    answer = await client.ask(described("t"), 10)

    allowed = {READ_TOPIC, DELETE_TOPIC, DESCRIBE_TOPIC}
    assert allowed < set(SUPPORTED[READ_TOPIC.resource_type])
    expected = sum(1 << permission.operation for permission in allowed)
    assert [expected] == [topic.topic_authorized_operations for topic in answer.topics]


# DescribeTopicPartitions


@pytest.mark.parametrize(
    ("acls", "asked", "told"),
    [
        (NOTHING, [], []),
        (((DESCRIBE_TOPIC, "t"),), [], [("t", 0)]),
        (NOTHING, ["t", "no"], [("no", FORBIDDEN), ("t", FORBIDDEN)]),
        (((DESCRIBE_TOPIC, "u"),), ["t", "u"], [("u", 0), ("t", FORBIDDEN)]),
        (((DESCRIBE_TOPIC, "no"),), ["no", "t"], [("no", UNKNOWN), ("t", FORBIDDEN)]),
    ],
)
async def test_pages_of_topics_leave_out_or_refuse_what_the_client_may_not_describe(
    broker: TestBroker, client: WireClient, acls: Rights, asked: list[str], told: list[Any]
) -> None:
    await create_topics(broker, {"t": 1, "u": 1})
    await allow_only(broker, acls)

    answer = await client.ask(topic_pages(*asked), 0)

    found = [(topic.name, topic.error_code) for topic in answer.topics]
    is_hidden = [code == FORBIDDEN for _, code in found]
    assert is_hidden == sorted(is_hidden)
    assert sorted(told) == sorted(found)
    assert all(
        topic.topic_id == ZERO_UUID and topic.topic_authorized_operations == NOT_REQUESTED
        for topic in answer.topics
        if topic.error_code == FORBIDDEN
    )


@pytest.mark.parametrize("asked", [[], ["a", "b", "c"]])
async def test_hidden_topics_take_no_room_of_a_page(
    broker: TestBroker, client: WireClient, asked: list[str]
) -> None:
    await create_topics(broker, {"a": 1, "b": 1, "c": 1})
    await allow_only(broker, ((DESCRIBE_TOPIC, "a"), (DESCRIBE_TOPIC, "c")))

    first = await client.ask(topic_pages(*asked, limit=1), 0)
    second = await client.ask(topic_pages(*asked, after=("c", 0), limit=1), 0)

    shown = [
        [topic.name for topic in page.topics if topic.error_code == 0] for page in (first, second)
    ]
    assert [["a"], ["c"]] == shown
    assert "c" == first.next_cursor.topic_name
    assert second.next_cursor is None


# CreateTopics


def creations(*names: str) -> Message:
    return api_request("create_topics", topics=[creatable(name, 2) for name in names])


@pytest.mark.parametrize(
    ("acls", "codes"),
    [
        (NOTHING, {"t": FORBIDDEN, "new": FORBIDDEN}),
        (((DESCRIBE_TOPIC, "*"),), {"t": FORBIDDEN, "new": FORBIDDEN}),
        (((CREATE_TOPIC, "new"),), {"t": FORBIDDEN, "new": 0}),
        (((CREATE_CLUSTER, CLUSTER_NAME),), {"t": E.TOPIC_ALREADY_EXISTS, "new": 0}),
    ],
)
async def test_a_client_creates_the_topics_that_it_may_create(
    broker: TestBroker, client: WireClient, acls: Rights, codes: dict[str, int]
) -> None:
    await create_topics(broker, {"t": 1})
    await allow_only(broker, acls)

    answer = await client.ask(creations("t", "new"), 7)

    assert codes == {topic.name: topic.error_code for topic in answer.topics}
    assert (codes["new"] == 0) == exists(broker, "new")
    assert {"Authorization failed."} >= {
        topic.error_message for topic in answer.topics if topic.error_code == FORBIDDEN
    }


async def test_what_is_wrong_with_the_names_comes_before_permissions(
    broker: TestBroker, client: WireClient
) -> None:
    answer = await client.ask(creations("t", "t", "__cluster_metadata", "u"), 7)

    invalid = E.INVALID_REQUEST
    assert {"t": invalid, "__cluster_metadata": invalid, "u": FORBIDDEN} == {
        topic.name: topic.error_code for topic in answer.topics
    }


async def test_the_options_of_a_new_topic_are_shown_to_who_may_see_them(
    broker: TestBroker, client: WireClient
) -> None:
    await allow_only(broker, ((CREATE_TOPIC, "*"), (DESCRIBE_CONFIGS_TOPIC, "shown")))

    answer = await client.ask(creations("shown", "hidden"), 7)

    topics = {topic.name: topic for topic in answer.topics}
    shown, hidden = topics["shown"], topics["hidden"]
    assert shown.configs
    assert (0, 2, 1) == (
        shown.topic_config_error_code,
        shown.num_partitions,
        shown.replication_factor,
    )
    assert (FORBIDDEN, -1, -1, []) == (
        hidden.topic_config_error_code,
        hidden.num_partitions,
        hidden.replication_factor,
        hidden.configs,
    )
    assert topic_id(broker, "hidden") == hidden.topic_id


# CreatePartitions


@pytest.mark.parametrize(
    ("acls", "topic", "code"),
    [
        (NOTHING, "t", FORBIDDEN),
        (NOTHING, "no", FORBIDDEN),
        (((CREATE_TOPIC, "t"),), "t", FORBIDDEN),
        (((ALTER_TOPIC, "t"),), "t", 0),
        (((ALTER_TOPIC, "*"),), "no", UNKNOWN),
    ],
)
async def test_who_may_alter_a_topic_adds_partitions(
    broker: TestBroker, client: WireClient, acls: Rights, topic: str, code: int
) -> None:
    await create_topics(broker, {"t": 1})
    await allow_only(broker, acls)

    answer = await client.ask(grow(topic, 2), 3)

    assert [(topic, code, None)] == [
        (result.name, result.error_code, result.error_message) for result in answer.results
    ]


async def test_topics_that_are_named_twice_are_not_asked_about(
    broker: TestBroker, client: WireClient
) -> None:
    request = grow("t", 2)
    request.topics.append(request.topics[0])

    answer = await client.ask(request, 3)

    assert [E.INVALID_REQUEST] == [result.error_code for result in answer.results]


# DeleteTopics


@pytest.mark.parametrize(
    ("acls", "codes"),
    [
        (NOTHING, {"t": FORBIDDEN, "no": FORBIDDEN}),
        (((DESCRIBE_TOPIC, "*"),), {"t": FORBIDDEN, "no": UNKNOWN}),
        (((DELETE_TOPIC, "t"),), {"t": 0, "no": FORBIDDEN}),
        (((DELETE_CLUSTER, CLUSTER_NAME),), {"t": 0, "no": UNKNOWN}),
    ],
)
@pytest.mark.parametrize("version", [5, 6])
async def test_topics_are_deleted_by_name(
    broker: TestBroker, client: WireClient, acls: Rights, codes: dict[str, int], version: int
) -> None:
    await create_topics(broker, {"t": 1})
    await allow_only(broker, acls)

    answer = await client.ask(delete_request(version, *codes), version)

    assert codes == {result.name: result.error_code for result in answer.responses}
    assert (codes["t"] != 0) == exists(broker, "t")
    assert all(
        result.topic_id == ZERO_UUID
        for result in answer.responses
        if result.error_code == FORBIDDEN
    )


@pytest.mark.parametrize(
    ("acls", "name", "code"),
    [
        (NOTHING, None, FORBIDDEN),
        (((DESCRIBE_TOPIC, "t"),), "t", FORBIDDEN),
        (((DELETE_TOPIC, "t"),), "t", 0),
        (((DELETE_CLUSTER, CLUSTER_NAME),), "t", 0),
    ],
)
async def test_topics_are_deleted_by_id(
    broker: TestBroker, client: WireClient, acls: Rights, name: str | None, code: int
) -> None:
    await create_topics(broker, {"t": 1})
    await allow_only(broker, acls)
    t = topic_id(broker, "t")
    states = [{"topic_id": each} for each in (t, NOBODYS)]

    answer = await client.ask(api_request("delete_topics", topics=states, timeout_ms=10_000), 6)

    assert {t: (name, code), NOBODYS: (None, E.UNKNOWN_TOPIC_ID)} == {
        result.topic_id: (result.name, result.error_code) for result in answer.responses
    }


# DeleteRecords


@pytest.mark.parametrize(
    ("acls", "codes"),
    [
        (NOTHING, {"t": FORBIDDEN, "no": FORBIDDEN}),
        (((READ_TOPIC, "*"), (WRITE_TOPIC, "*")), {"t": FORBIDDEN, "no": FORBIDDEN}),
        (((DELETE_TOPIC, "t"),), {"t": 0, "no": FORBIDDEN}),
        (((DELETE_TOPIC, "*"),), {"t": 0, "no": UNKNOWN}),
    ],
)
async def test_who_may_delete_a_topic_deletes_its_records(
    broker: TestBroker, client: WireClient, acls: Rights, codes: dict[str, int]
) -> None:
    await create_topics(broker, {"t": 1})
    await allow_only(broker, acls)
    partitions = [{"partition_index": 0, "offset": 0}]
    topics = [{"name": name, "partitions": partitions} for name in codes]

    answer = await client.ask(api_request("delete_records", topics=topics, timeout_ms=10_000), 2)

    assert {name: [(0, code, -1 if code else 0)] for name, code in codes.items()} == {
        topic.name: [(p.partition_index, p.error_code, p.low_watermark) for p in topic.partitions]
        for topic in answer.topics
    }


# DescribeProducers


@pytest.mark.parametrize(
    ("acls", "codes"),
    [
        (NOTHING, {"t": FORBIDDEN, "no": FORBIDDEN, "not legal": E.INVALID_TOPIC_EXCEPTION}),
        (((DESCRIBE_TOPIC, "*"),), {"t": FORBIDDEN, "no": FORBIDDEN}),
        (((READ_TOPIC, "*"),), {"t": 0, "no": UNKNOWN}),
    ],
)
async def test_who_may_read_a_topic_sees_its_producers(
    broker: TestBroker, client: WireClient, acls: Rights, codes: dict[str, int]
) -> None:
    await create_topics(broker, {"t": 1})
    await allow_only(broker, acls)
    topics = [{"name": name, "partition_indexes": [0]} for name in codes]

    answer = await client.ask(api_request("describe_producers", topics=topics), 0)

    assert {name: [(0, code)] for name, code in codes.items()} == {
        topic.name: [(p.partition_index, p.error_code) for p in topic.partitions]
        for topic in answer.topics
    }
    assert all(
        (p.error_message is None) == (p.error_code == 0)
        for topic in answer.topics
        for p in topic.partitions
    )
