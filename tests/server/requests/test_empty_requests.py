"""
Requests that ask for nothing, or name a topic and none of its partitions.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
)
from barnabas.protocol.messages.elect_leaders import ElectLeadersRequest
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsTopic
from barnabas.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitRequestTopic
from barnabas.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestTopic,
)
from barnabas.server.manual_clock import ManualClock
from tests.support.disk import MemoryFiles
from tests.support.server import START_MS, TestBroker, running
from tests.support.wire_client import WireClient

NO_ELECTION = 10
SHARE = 2


@pytest.fixture
async def broker() -> AsyncIterator[TestBroker]:
    async with running(MemoryFiles(), ManualClock(START_MS)) as broker:
        await broker.create("orders")
        yield broker


@pytest.fixture
async def client(broker: TestBroker) -> AsyncIterator[WireClient]:
    async with await broker.client() as client:
        yield client


async def test_list_offsets_leaves_out_topics_without_partitions(client: WireClient) -> None:
    topics = [ListOffsetsTopic(name=name, partitions=[]) for name in ("orders", "nowhere")]

    answer = await client.ask(
        ListOffsetsRequest(replica_id=-1, isolation_level=0, topics=topics), 11
    )

    assert [] == answer.topics


async def test_offset_commit_names_unknown_topics_without_partitions(client: WireClient) -> None:
    topics = [OffsetCommitRequestTopic(name=name, partitions=[]) for name in ("orders", "nowhere")]

    answer = await client.ask(OffsetCommitRequest(group_id="g", member_id="", topics=topics), 8)

    assert [("nowhere", [])] == [(topic.name, topic.partitions) for topic in answer.topics]


async def test_txn_offset_commit_names_unknown_topics_without_partitions(
    client: WireClient,
) -> None:
    topics = [
        TxnOffsetCommitRequestTopic(name=name, partitions=[])
        for name in ("orders", "nowhere", "nowhere")
    ]
    request = TxnOffsetCommitRequest(
        transactional_id="t", group_id="g", producer_id=0, producer_epoch=0, topics=topics
    )

    answer = await client.ask(request, 3)

    assert [("nowhere", [])] == [(topic.name, topic.partitions) for topic in answer.topics]


async def test_without_a_partition_no_kind_of_election_is_wrong(client: WireClient) -> None:
    nothing = ElectLeadersRequest(election_type=NO_ELECTION, topic_partitions=[], timeout_ms=1000)
    everything = ElectLeadersRequest(
        election_type=NO_ELECTION, topic_partitions=None, timeout_ms=1000
    )

    assert ErrorCode.NONE == (await client.ask(nothing, 2)).error_code
    assert ErrorCode.INVALID_REQUEST == (await client.ask(everything, 2)).error_code


async def test_no_reassignment_is_answered_with_defaults(client: WireClient) -> None:
    request = AlterPartitionReassignmentsRequest(
        timeout_ms=1000, allow_replication_factor_change=False, topics=[]
    )

    answer = await client.ask(request, 1)

    assert (True, ErrorCode.NONE, "", []) == (
        answer.allow_replication_factor_change,
        answer.error_code,
        answer.error_message,
        answer.responses,
    )


async def test_a_coordinator_of_share_groups_is_refused_for_each_key(client: WireClient) -> None:
    request = FindCoordinatorRequest(key_type=SHARE, coordinator_keys=["a", "b"])

    answer = await client.ask(request, 4)

    assert [("a", ErrorCode.INVALID_REQUEST, ""), ("b", ErrorCode.INVALID_REQUEST, "")] == [
        (each.key, each.error_code, each.error_message) for each in answer.coordinators
    ]
