"""
WriteTxnMarkers, from an administrator. What is expected is what an Apache Kafka 4.3.1 answered.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import pytest_asyncio

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.write_txn_markers import WritableTxnMarker
from barnabas.server.clock import EventLoopClock
from tests.support import transaction_requests
from tests.support.server import running
from tests.support.transaction_requests import markers_request
from tests.support.wire_client import WireClient

NOBODY = -1
NONE, UNKNOWN = ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest_asyncio.fixture
async def wire() -> AsyncIterator[WireClient]:
    """
    A client of a broker that has the partitions t-0 and t-1.
    """
    async with running(None, EventLoopClock()) as broker, await broker.client() as client:
        await broker.create("t", 2)
        yield client


def marker(producer_id: int, *partitions: int, topic: str = "t") -> WritableTxnMarker:
    return transaction_requests.marker((producer_id, 0), {topic: partitions}, commit=True)


async def answered(
    wire: WireClient, *markers: WritableTxnMarker
) -> Sequence[tuple[int, str, int, int]]:
    """
    Producer id, topic, partition and error of each partition in the answer.
    """
    answer = await wire.ask(markers_request(*markers), 1)
    return [
        (result.producer_id, topic.name, partition.partition_index, partition.error_code)
        for result in answer.markers
        for topic in result.topics
        for partition in topic.partitions
    ]


async def test_markers_of_one_producer_are_answered_as_one(wire: WireClient) -> None:
    markers = [marker(7, 0), marker(8, 0), marker(7, 1, 5)]

    answer = await wire.ask(markers_request(*markers), 1)

    assert [7, 8] == [result.producer_id for result in answer.markers]
    assert [(7, "t", 0, NONE), (7, "t", 1, NONE), (7, "t", 5, UNKNOWN), (8, "t", 0, NONE)] == (
        await answered(wire, *markers)
    )


async def test_marker_without_partitions_is_not_answered(wire: WireClient) -> None:
    assert [] == (await wire.ask(markers_request(marker(7)), 1)).markers


async def test_invalid_marker_fails_when_it_would_be_written(wire: WireClient) -> None:
    assert [(NOBODY, "x", 0, UNKNOWN), (NOBODY, "x", 1, UNKNOWN)] == (
        await answered(wire, marker(NOBODY, 0, 1, topic="x"))
    )

    unforeseen = ErrorCode.UNKNOWN_SERVER_ERROR
    assert [(NOBODY, "t", 0, unforeseen), (NOBODY, "t", 9, unforeseen)] == (
        await answered(wire, marker(NOBODY, 0, 9))
    )
