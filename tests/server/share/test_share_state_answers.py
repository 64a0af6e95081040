"""
Which topics the answers of the share coordinator have.
"""

from __future__ import annotations

from uuid import UUID

from tests.support.build import api_request
from tests.support.server import running

FULL, EMPTY = UUID(int=1), UUID(int=2)


async def test_topic_without_partitions_is_initialized_without_an_answer() -> None:
    """
    As in Kafka's ``ShareCoordinatorService``, whose other requests are not served then.
    """
    partition = {"partition": 0, "state_epoch": 0, "start_offset": 0}
    request = api_request(
        "initialize_share_group_state",
        group_id="g",
        topics=[
            {"topic_id": EMPTY, "partitions": []},
            {"topic_id": FULL, "partitions": [partition]},
            {"topic_id": FULL, "partitions": []},
        ],
    )
    async with running() as broker, await broker.client() as client:
        answer = await client.ask(request, 0)

    assert [(FULL, 1)] == [(each.topic_id, len(each.partitions)) for each in answer.results]
