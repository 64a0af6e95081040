"""
Rules of every API: a client without permissions changes and learns nothing, and a handler checks
the permissions that it declares.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import pytest

from barnabas.coordination.security.acl.bindings import AclOperation, ResourceType
from barnabas.coordination.security.acl.permissions import DESCRIBE_TOPIC, Permission
from barnabas.protocol import apis
from barnabas.protocol.codec.schema import Array, Message, Struct, fields
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from barnabas.protocol.messages.create_delegation_token import CreateDelegationTokenRequest
from barnabas.protocol.messages.describe_configs import DescribeConfigsRequest
from barnabas.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenRequest,
)
from barnabas.protocol.messages.describe_groups import DescribeGroupsRequest
from barnabas.protocol.messages.describe_transactions import DescribeTransactionsRequest
from barnabas.protocol.messages.fetch import FetchRequest
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas.protocol.messages.list_offsets import ListOffsetsRequest
from barnabas.protocol.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from barnabas.protocol.messages.share_group_describe import ShareGroupDescribeRequest
from barnabas.protocol.messages.streams_group_describe import StreamsGroupDescribeRequest
from barnabas.server.requests.authorization import NOTHING
from barnabas.server.requests.registry import HANDLERS
from tests.support.acls import AUTHORIZER, EVERYTHING, allow_only, create_topics
from tests.support.authorization_requests import DOOMED, MAKERS, MISSING, OPEN, OTHER, Ids
from tests.support.group_requests import commit_request, coordinator_request
from tests.support.refusals import codes
from tests.support.server import TestBroker
from tests.support.wire_client import WireClient

pytestmark = pytest.mark.broker(
    **AUTHORIZER,
    auto_create_topics_enable="false",
    transaction_state_log_num_partitions="1",
    offsets_topic_num_partitions="1",
)
TELL_WHAT_IS_ALLOWED: Final = frozenset(
    api.key
    for api in (
        apis.CONSUMER_GROUP_DESCRIBE,
        apis.DESCRIBE_CLUSTER,
        apis.DESCRIBE_GROUPS,
        apis.DESCRIBE_TOPIC_PARTITIONS,
        apis.METADATA,
        apis.SHARE_GROUP_DESCRIBE,
        apis.STREAMS_GROUP_DESCRIBE,
    )
)
"""
The APIs whose clients may ask for all operations that they are allowed.
"""
NOT_ASKED_HERE: Final[Mapping[type[Message], Permission]] = {
    ConsumerGroupDescribeRequest: DESCRIBE_TOPIC,  # of members that have partitions
    ShareGroupDescribeRequest: DESCRIBE_TOPIC,  # as above
    StreamsGroupDescribeRequest: DESCRIBE_TOPIC,  # as above
    DescribeTransactionsRequest: DESCRIBE_TOPIC,  # within an open transaction
}
REFUSED: Final = frozenset(
    {
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    }
)
REQUESTS: Final = [
    pytest.param(request, id=request.__name__.removesuffix("Request")) for request in MAKERS
]


async def furnish(broker: TestBroker, client: WireClient) -> Ids:
    """
    Topics, groups with offsets, transactional ids, and what keeps them.
    """
    await create_topics(broker, dict.fromkeys((OPEN, OTHER, DOOMED), 1))
    await allow_only(broker, EVERYTHING)
    for group in (OPEN, OTHER):
        await client.ask(coordinator_request(group), 4)
        await client.ask(commit_request(group, OPEN, {0: 1}), 8)
        begin = InitProducerIdRequest(transactional_id=group, transaction_timeout_ms=60_000)
        await client.ask(coordinator_request(group, key_type=1), 4)
        assert 0 == (await client.ask(begin, 4)).error_code
    return {topic.name: topic.id for topic in broker.inside.topics}


def state_of(broker: TestBroker) -> dict[str, int]:
    ends = {
        str(partition.log.topic_partition): partition.log.log_end_offset
        for partition in broker.inside.partitions
    }
    return {**ends, "metadata": broker.inside.controller.log.end_offset}


def entries(message: Any, version: int) -> Iterator[list[Any]]:
    for field in fields(type(message)):
        value = getattr(message, field.name)
        if not field.is_in(version) or not isinstance(field.type, Array) or not value:
            continue
        if isinstance(field.type.element, Struct):
            yield value
            for each in value:
                yield from entries(each, version)


def told_of(message: Any, version: int, name: str) -> list[Any]:
    """
    The entries of a response with that name, without the name itself.
    """
    found = []
    for array in entries(message, version):
        for entry in array:
            plain = {
                field.name: getattr(entry, field.name)
                for field in fields(type(entry))
                if field.is_in(version)
            }
            if name in plain.values():
                found.append(repr({key: each for key, each in plain.items() if each != name}))
    return sorted(found)


def test_every_api_has_a_sample_request() -> None:
    everyone = {key for key, found in HANDLERS.items() if found.needs is NOTHING}

    assert set(HANDLERS) - everyone == {request.api.key for request in MAKERS}


@pytest.mark.parametrize("request_type", REQUESTS)
async def test_client_without_permissions_changes_and_learns_nothing(
    broker: TestBroker, client: WireClient, request_type: type[Message]
) -> None:
    """
    Existing and missing resources get the same response, without a topic id. A known id is refused,
    and an unknown one is reported as unknown.
    """
    ids = await furnish(broker, client)
    await allow_only(broker, ())
    before = state_of(broker)

    for version in request_type.api.versions:
        for asked in MAKERS[request_type](version, ids):
            answer = await client.ask(asked, version)

            assert before == state_of(broker)
            if f"'{OTHER}'" in repr(asked):
                missing, existing = (told_of(answer, version, it) for it in (MISSING, OTHER))
                assert set(missing) <= set(existing)
            if not any(str(topic_id) in repr(asked) for topic_id in ids.values()):
                assert not any(str(topic_id) in repr(answer) for topic_id in ids.values())


ON_SECURED_LISTENERS: Final = (CreateDelegationTokenRequest, DescribeDelegationTokenRequest)
"""
The requests that are refused on others before anything is asked.
"""


@pytest.mark.parametrize(
    "request_type", [each for each in REQUESTS if each.values[0] not in ON_SECURED_LISTENERS]
)
async def test_handler_checks_the_permissions_it_declares(
    broker: TestBroker, client: WireClient, request_type: type[Message]
) -> None:
    ids = await furnish(broker, client)
    authorizer = broker.inside.authorizer
    assert authorizer is not None
    asked: set[Permission] = set()

    for rights in ((), EVERYTHING[:-1], EVERYTHING):
        await allow_only(broker, rights)
        for version in request_type.api.versions:
            authorizer.decisions.clear()
            for each in MAKERS[request_type](version, ids):
                await client.ask(each, version)

            assert authorizer.decisions, version
            asked.update(permission for _, _, permission, _ in authorizer.decisions)

    declared = set(HANDLERS[request_type.api.key].needs.permissions)
    declared -= {NOT_ASKED_HERE.get(request_type)}
    if request_type.api.key in TELL_WHAT_IS_ALLOWED:
        assert declared <= asked
    else:
        assert declared == asked


@pytest.mark.parametrize(
    ("request_type", "version", "is_refused_last"),
    [
        (FetchRequest, 12, True),
        (ListOffsetsRequest, 7, True),
        (OffsetForLeaderEpochRequest, 4, True),
        (DescribeConfigsRequest, 4, True),
        (DescribeGroupsRequest, 6, False),
    ],
)
async def test_refused_entries_are_together(
    broker: TestBroker,
    client: WireClient,
    request_type: type[Message],
    version: int,
    is_refused_last: bool,
) -> None:
    """
    The client may use the second entry only.
    """
    ids = await furnish(broker, client)
    await allow_only(
        broker,
        [
            (Permission(AclOperation.ALL, it), OTHER)
            for it in (ResourceType.TOPIC, ResourceType.GROUP)
        ],
    )
    asked = next(MAKERS[request_type](version, ids))

    answer = await client.ask(asked, version)

    is_refused = [
        bool(REFUSED.intersection(codes(entry, version)))
        for entry in next(entries(answer, version))
    ]
    assert {True, False} == set(is_refused)
    assert sorted(is_refused, reverse=not is_refused_last) == is_refused
