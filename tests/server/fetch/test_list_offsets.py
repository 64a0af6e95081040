"""
ListOffsets, over the wire.
"""

from __future__ import annotations

import gc

import pytest

from barnabas.protocol.errors import ErrorCode, KafkaError
from tests.support.requests import handled, request_context
from tests.support.server import TestBroker, list_offsets_request
from tests.support.wire_client import WireClient

pytestmark = pytest.mark.broker(topics={"orders": 2})


LATEST, EARLIEST = -1, -2


async def test_earliest_offset_of_a_closed_log_is_refused(
    broker: TestBroker, client: WireClient
) -> None:
    broker.partitions.expect("orders", 0).log.close()

    answer = await client.ask(list_offsets_request("orders", {0: EARLIEST}), 9)

    assert ErrorCode.KAFKA_STORAGE_ERROR == answer.topics[0].partitions[0].error_code


def errors() -> int:
    return sum(isinstance(found, KafkaError) for found in gc.get_objects())


@pytest.mark.parametrize("timestamp", [LATEST, 100])
async def test_requests_for_unknown_partitions_leave_no_garbage(
    client: WireClient, timestamp: int
) -> None:
    # Errors that keep their tracebacks would, until the next collection.
    request = list_offsets_request("nothing", dict.fromkeys(range(50), timestamp))
    gc.collect()
    gc.disable()
    try:
        before = errors()
        answer = await client.ask(request, 7)
        after = errors()
    finally:
        gc.enable()

    assert {3} == {partition.error_code for partition in answer.topics[0].partitions}
    assert after <= before


async def test_files_are_not_searched_for_a_client_that_has_left(broker: TestBroker) -> None:
    context = request_context(broker.parts, 9)
    answered = await handled(list_offsets_request("orders", {0: 100, 1: 100}), context)

    context.client.is_closing = True
    abandoned = await handled(list_offsets_request("orders", {0: 100, 1: 100}), context)

    assert [2] == [len(topic.partitions) for topic in answered.topics]
    assert [] == abandoned.topics
