"""
Topics that Metadata creates for a client or hides from it. test_authorization.py compares the other
responses about topics with Apache Kafka.
"""

from __future__ import annotations

from typing import Final
from uuid import UUID

import pytest

from barnabas.coordination.security.acl.bindings import CLUSTER_NAME
from barnabas.coordination.security.acl.permissions import (
    CREATE_CLUSTER,
    CREATE_TOPIC,
    DESCRIBE_TOPIC,
)
from barnabas.protocol.codec.schema import ZERO_UUID, Message
from barnabas.protocol.errors import ErrorCode
from tests.support.acls import AUTHORIZER, Rights, allow_only, create_topics
from tests.support.server import TestBroker, metadata_request
from tests.support.wire_client import WireClient

E = ErrorCode
pytestmark = pytest.mark.broker(**AUTHORIZER)

FORBIDDEN: Final = E.TOPIC_AUTHORIZATION_FAILED
NOT_REQUESTED: Final = -(2**31)


def exists(broker: TestBroker, name: str) -> bool:
    return name in broker.inside.topics


# Metadata


def described(*topics: str | UUID, create: bool = False) -> Message:
    return metadata_request(*topics, create=create, include_topic_authorized_operations=True)


async def test_metadata_does_not_reveal_whether_an_unauthorized_topic_exists(
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
async def test_metadata_creates_only_topics_with_create_permission(
    broker: TestBroker, client: WireClient, acls: Rights, code: int, is_internal: bool
) -> None:
    await allow_only(broker, acls)

    answer = await client.ask(described("__transaction_state", create=True), 10)

    (topic,) = answer.topics
    assert (code, is_internal) == (topic.error_code, topic.is_internal)
    assert (code == 0) == exists(broker, "__transaction_state")
