"""
What clients are told of transactions that they have no rights for. What is expected is what Apache
Kafka 4.3.1 answers (``KafkaApis``).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final

import pytest

from barnabas.protocol.messages.describe_transactions import DescribeTransactionsRequest
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas.protocol.messages.list_transactions import ListTransactionsRequest
from barnabas.server.cluster.topic_names import GROUP_METADATA_TOPIC
from barnabas.server.coordinator_runtime.producer import Producer
from barnabas.server.security.acl.bindings import CLUSTER_NAME
from barnabas.server.security.acl.permissions import (
    ALTER_CLUSTER,
    CLUSTER_ACTION,
    DESCRIBE_CLUSTER,
    DESCRIBE_GROUP,
    DESCRIBE_TOPIC,
    DESCRIBE_TRANSACTIONAL_ID,
    READ_GROUP,
    READ_TOPIC,
    WRITE_TOPIC,
    WRITE_TRANSACTIONAL_ID,
)
from tests.support.acls import AUTHORIZER, EVERYTHING, Right, allow_only
from tests.support.group_requests import coordinator_request
from tests.support.refusals import codes
from tests.support.server import TestBroker, running
from tests.support.transaction_requests import (
    add_as_broker_request,
    add_offsets_request,
    add_partitions_request,
    commit_in_transaction_request,
    end_request,
    marker,
    markers_request,
)
from tests.support.wire_client import WireClient

UNKNOWN_TOPIC, NO_TOPIC, NO_GROUP, NO_CLUSTER, NO_TRANSACTION = 3, 29, 30, 31, 53
NOT_ATTEMPTED, NOT_FOUND = 55, 105

WRITE_ID: Final = (WRITE_TRANSACTIONAL_ID, "a")
DESCRIBE_ID: Final = (DESCRIBE_TRANSACTIONAL_ID, "a")
READ_G: Final = (READ_GROUP, "g")
WRITE_T: Final = (WRITE_TOPIC, "t")
READ_T: Final = (READ_TOPIC, "t")
PARTITIONS: Final = {"t": [0, 1], "u": [0], "x": [0]}


@pytest.fixture
async def broker() -> AsyncIterator[TestBroker]:
    """
    The topics t and u have a partition each; the coordinators are up.
    """
    small = {"offsets_topic_num_partitions": "1", "transaction_state_log_num_partitions": "1"}
    async with running(**AUTHORIZER, **small) as broker:
        await allow_only(broker, EVERYTHING)
        for topic in ("t", "u"):
            await broker.create(topic)
        async with await broker.client() as client:
            for key_type in (0, 1):
                await client.ask(coordinator_request("any", key_type=key_type), 4)
        await allow_only(broker, ())
        yield broker


async def begin(
    client: WireClient, transactional_id: str, partitions: Mapping[str, Sequence[int]]
) -> Producer:
    """
    Begin a transaction, while everything is allowed.
    """
    request = InitProducerIdRequest(
        transactional_id=transactional_id, transaction_timeout_ms=60_000
    )
    answer = await client.ask(request, 4)
    producer = Producer(answer.producer_id, answer.producer_epoch)
    added = await client.ask(add_partitions_request(transactional_id, producer, partitions), 3)
    assert {0} == set(codes(added, 3)) or not partitions
    return producer


@pytest.fixture
async def producer(broker: TestBroker, client: WireClient) -> Producer:
    """
    The producer of a transaction with the id a, and the partitions t-0 and u-0.
    """
    await allow_only(broker, EVERYTHING)
    producer = await begin(client, "a", {"t": [0], "u": [0]})
    await allow_only(broker, ())
    return producer


@pytest.mark.parametrize("version", [0, 3])
@pytest.mark.parametrize(
    ("rights", "expected"),
    [
        ((), {"t": [NO_TRANSACTION] * 2, "u": [NO_TRANSACTION], "x": [NO_TRANSACTION]}),
        ((DESCRIBE_ID, WRITE_T), {"t": [53, 53], "u": [NO_TRANSACTION], "x": [53]}),
        ((WRITE_ID,), {"t": [NO_TOPIC, NO_TOPIC], "u": [NO_TOPIC], "x": [NO_TOPIC]}),
        (
            (WRITE_ID, WRITE_T, (READ_TOPIC, "u")),
            {"t": [NOT_ATTEMPTED, UNKNOWN_TOPIC], "u": [NO_TOPIC], "x": [NO_TOPIC]},
        ),
        (
            (WRITE_ID, (WRITE_TOPIC, "u"), (WRITE_TOPIC, "x")),
            {"t": [NO_TOPIC, NO_TOPIC], "u": [NOT_ATTEMPTED], "x": [UNKNOWN_TOPIC]},
        ),
        (
            (WRITE_ID, (WRITE_TOPIC, "*")),
            {"t": [NOT_ATTEMPTED, 3], "u": [NOT_ATTEMPTED], "x": [UNKNOWN_TOPIC]},
        ),
    ],
)
async def test_partitions_are_added_of_topics_that_may_be_written(
    broker: TestBroker,
    client: WireClient,
    version: int,
    rights: Sequence[Right],
    expected: Mapping[str, Sequence[int]],
) -> None:
    await allow_only(broker, rights)

    answer = await client.ask(add_partitions_request("a", (1, 0), PARTITIONS), version)

    topics = answer.results_by_topic_v3_and_below
    assert expected == {topic.name: codes(topic.results_by_partition, 0) for topic in topics}


async def test_no_client_adds_partitions_of_internal_topics(
    broker: TestBroker, client: WireClient, producer: Producer
) -> None:
    await allow_only(broker, [WRITE_ID, WRITE_T])
    known = await client.ask(add_partitions_request("a", producer, {"t": [0]}), 3)
    assert [0] == codes(known, 3)

    await allow_only(broker, EVERYTHING)
    request = add_partitions_request("a", producer, {GROUP_METADATA_TOPIC: [0]})
    internal = await client.ask(request, 3)
    assert [NO_TOPIC] == codes(internal, 3)


@pytest.mark.parametrize("version", [4, 5])
async def test_brokers_add_partitions_with_the_right_of_the_cluster(
    broker: TestBroker, client: WireClient, producer: Producer, version: int
) -> None:
    request = add_as_broker_request([("a", producer)], {"t": [0]}, verify=True)

    await allow_only(broker, [WRITE_ID, WRITE_T, (ALTER_CLUSTER, CLUSTER_NAME)])
    answer = await client.ask(request, version)
    assert (NO_CLUSTER, []) == (answer.error_code, answer.results_by_transaction)

    await allow_only(broker, [(CLUSTER_ACTION, CLUSTER_NAME)])
    assert [0, 0] == codes(await client.ask(request, version), version)


@pytest.mark.parametrize("version", [0, 4])
async def test_offsets_are_added_by_those_who_may_write_the_transaction_and_read_the_group(
    broker: TestBroker, client: WireClient, producer: Producer, version: int
) -> None:
    request = add_offsets_request("a", producer, "g")
    for rights, expected in (
        ((), NO_TRANSACTION),
        ((DESCRIBE_ID, READ_G), NO_TRANSACTION),
        ((WRITE_ID, (DESCRIBE_GROUP, "g")), NO_GROUP),
        ((WRITE_ID, READ_G), 0),
    ):
        await allow_only(broker, rights)
        assert expected == (await client.ask(request, version)).error_code


@pytest.mark.parametrize("version", [0, 5])
@pytest.mark.parametrize(
    ("rights", "expected"),
    [
        ((READ_G, READ_T), {"t": [53, 53], "u": [53, 53], "x": [NO_TRANSACTION] * 2}),
        ((WRITE_ID, READ_T), {"t": [30, 30], "u": [30, 30], "x": [NO_GROUP] * 2}),
        ((WRITE_ID, READ_G), {"t": [29, 29], "u": [29, 29], "x": [NO_TOPIC] * 2}),
        (
            (WRITE_ID, READ_G, READ_T, (DESCRIBE_TOPIC, "u")),
            {"t": [0, UNKNOWN_TOPIC], "u": [NO_TOPIC] * 2, "x": [NO_TOPIC] * 2},
        ),
        (
            (WRITE_ID, READ_G, READ_T, (READ_TOPIC, "x")),
            {"t": [0, UNKNOWN_TOPIC], "u": [NO_TOPIC] * 2, "x": [UNKNOWN_TOPIC] * 2},
        ),
    ],
)
async def test_offsets_are_committed_of_topics_that_may_be_read(
    broker: TestBroker, client: WireClient, version: int, rights: Any, expected: Any
) -> None:
    """
    Of each topic the partition 0 may exist, and 1 does not.
    """
    await allow_only(broker, EVERYTHING)
    producer = await begin(client, "a", {"t": [0]})
    assert [0] == codes(await client.ask(add_offsets_request("a", producer, "g"), 3), 3)
    await allow_only(broker, rights)

    offsets = {topic: {0: 5, 1: 5} for topic in ("t", "u", "x")}
    request = commit_in_transaction_request("a", producer, "g", offsets)
    answer = await client.ask(request, version)

    assert expected == {
        topic.name: sorted(codes(topic.partitions, version)) for topic in answer.topics
    }


@pytest.mark.parametrize("version", [1, 4, 5])
async def test_transactions_are_ended_by_those_who_may_write_them(
    broker: TestBroker, client: WireClient, producer: Producer, version: int
) -> None:
    request = end_request("a", producer, commit=True)
    await allow_only(broker, [DESCRIBE_ID])
    answer = await client.ask(request, version)
    assert (NO_TRANSACTION, -1, -1) == (
        answer.error_code,
        answer.producer_id,
        answer.producer_epoch,
    )

    await allow_only(broker, [WRITE_ID])
    assert 0 == (await client.ask(request, version)).error_code


@pytest.mark.parametrize(
    ("rights", "expected"),
    [
        ((), [NO_CLUSTER, NO_CLUSTER]),
        ((WRITE_ID, WRITE_T, (DESCRIBE_CLUSTER, CLUSTER_NAME)), [NO_CLUSTER, NO_CLUSTER]),
        (((ALTER_CLUSTER, CLUSTER_NAME),), [0, UNKNOWN_TOPIC]),
        (((CLUSTER_ACTION, CLUSTER_NAME),), [0, UNKNOWN_TOPIC]),
    ],
)
async def test_markers_are_written_by_those_who_may_alter_the_cluster_or_act_for_it(
    broker: TestBroker, client: WireClient, rights: Sequence[Right], expected: Sequence[int]
) -> None:
    request = markers_request(marker((5, 0), {"t": [0, 1]}, commit=True))
    await allow_only(broker, rights)

    for version in (1, 2):
        answer = await client.ask(request, version)
        assert expected == codes(answer, version)
        assert [5] == [each.producer_id for each in answer.markers]


@pytest.mark.parametrize(
    ("rights", "expected"),
    [
        ((), [("a", NO_TRANSACTION, "", []), ("b", NO_TRANSACTION, "", [])]),
        ((DESCRIBE_ID, READ_T), [("a", 0, "Ongoing", ["t"]), ("b", NO_TRANSACTION, "", [])]),
        (
            (WRITE_ID, (DESCRIBE_TRANSACTIONAL_ID, "b"), (DESCRIBE_TOPIC, "*")),
            [("a", 0, "Ongoing", ["t", "u"]), ("b", NOT_FOUND, "", [])],
        ),
        ((DESCRIBE_ID,), [("a", 0, "Ongoing", []), ("b", NO_TRANSACTION, "", [])]),
    ],
)
async def test_transactions_are_described_with_the_topics_that_may_be_described(
    broker: TestBroker,
    client: WireClient,
    producer: Producer,
    rights: Sequence[Right],
    expected: Sequence[tuple[Any, ...]],
) -> None:
    await allow_only(broker, rights)

    answer = await client.ask(DescribeTransactionsRequest(transactional_ids=["a", "b"]), 0)

    assert expected == [
        (
            each.transactional_id,
            each.error_code,
            each.transaction_state,
            [topic.topic for topic in each.topics],
        )
        for each in answer.transaction_states
    ]
    assert [producer.producer_id if each[1] == 0 else 0 for each in expected] == [
        each.producer_id for each in answer.transaction_states
    ]


@pytest.mark.parametrize(
    ("rights", "expected"),
    [
        ((), set()),
        (((DESCRIBE_CLUSTER, CLUSTER_NAME),), set()),
        ((DESCRIBE_ID,), {"a"}),
        (((WRITE_TRANSACTIONAL_ID, "b"),), {"b"}),
        (((DESCRIBE_TRANSACTIONAL_ID, "*"),), {"a", "b"}),
    ],
)
async def test_transactions_are_listed_that_may_be_described(
    broker: TestBroker, client: WireClient, rights: Sequence[Right], expected: set[str]
) -> None:
    await allow_only(broker, EVERYTHING)
    for name in ("a", "b"):
        await begin(client, name, {})
    await allow_only(broker, rights)

    for pattern in (None, "a|b"):
        request = ListTransactionsRequest(
            state_filters=[], producer_id_filters=[], transactional_id_pattern=pattern
        )
        answer = await client.ask(request, 2)
        assert expected == {each.transactional_id for each in answer.transaction_states}
