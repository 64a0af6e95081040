from __future__ import annotations

from typing import Any

import pytest

from barnabas.protocol.errors import ErrorCode
from tests.support.build import api_request
from tests.support.cluster_requests import election, moves
from tests.support.group_requests import coordinator_request
from tests.support.wire_client import WireClient

pytestmark = pytest.mark.broker(topics={"orders": 1})


NO_ELECTION = 10
SHARE = 2


def without_partitions(*names: str) -> list[dict[str, Any]]:
    return [{"name": name, "partitions": []} for name in names]


async def test_list_offsets_leaves_out_topics_without_partitions(client: WireClient) -> None:
    topics = without_partitions("orders", "nowhere")

    answer = await client.ask(api_request("list_offsets", replica_id=-1, topics=topics), 11)

    assert [] == answer.topics


async def test_offset_commit_names_unknown_topics_without_partitions(client: WireClient) -> None:
    topics = without_partitions("orders", "nowhere")
    request = api_request("offset_commit", group_id="g", member_id="", topics=topics)

    answer = await client.ask(request, 8)

    assert [("nowhere", [])] == [(topic.name, topic.partitions) for topic in answer.topics]


async def test_txn_offset_commit_names_unknown_topics_without_partitions(
    client: WireClient,
) -> None:
    topics = without_partitions("orders", "nowhere", "nowhere")
    producer = {"transactional_id": "t", "producer_id": 0, "producer_epoch": 0}
    request = api_request("txn_offset_commit", **producer, group_id="g", topics=topics)

    answer = await client.ask(request, 3)

    assert [("nowhere", [])] == [(topic.name, topic.partitions) for topic in answer.topics]


async def test_election_of_unknown_type_without_partitions_is_no_error(client: WireClient) -> None:
    nothing, everything = election(NO_ELECTION), election(NO_ELECTION, everything=True)

    assert ErrorCode.NONE == (await client.ask(nothing, 2)).error_code
    assert ErrorCode.INVALID_REQUEST == (await client.ask(everything, 2)).error_code


async def test_empty_reassignment_is_answered_with_defaults(client: WireClient) -> None:
    answer = await client.ask(moves(factor=False), 1)

    assert (True, ErrorCode.NONE, "", []) == (
        answer.allow_replication_factor_change,
        answer.error_code,
        answer.error_message,
        answer.responses,
    )


async def test_share_coordinator_is_refused_for_each_key(client: WireClient) -> None:
    answer = await client.ask(coordinator_request("a", "b", key_type=SHARE), 4)

    assert [("a", ErrorCode.INVALID_REQUEST, ""), ("b", ErrorCode.INVALID_REQUEST, "")] == [
        (each.key, each.error_code, each.error_message) for each in answer.coordinators
    ]
