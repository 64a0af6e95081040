"""
Waiting until a broker tells what its controller has decided.

Apache Kafka's controller answers when a change is committed. What the broker answers from is an
image of the metadata log that follows a little later, and on a busy machine not so little; the
partitions that it leads follow the image.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from tests.interop.tools.toolbox import PATIENCE
from tests.support.build import api_request
from tests.support.cluster_requests import quorum
from tests.support.wire_client import WireClient

LATEST: Final = -1
NOT_YET: Final = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_LEADER_OR_FOLLOWER})


def wait_until_caught_up(port: int) -> None:
    """
    Wait until the broker on this *port* tells all that is committed by now, and serves what it
    says it leads.

    Raises:
        TimeoutError: it does not get there.
    """
    asyncio.run(_wait(port))


async def _wait(port: int) -> None:
    async with await WireClient.open(port) as client:
        [topic] = (await client.ask(quorum(("__cluster_metadata", [0])), 0)).topics
        last_offset: int = topic.partitions[0].high_watermark - 1
        asked = ApiVersionsRequest(client_software_name="tour", client_software_version="1")

        async def has_come_there() -> bool:
            # The epoch of the features is the offset up to which the image has come.
            epoch: int = (await client.ask(asked, 3)).finalized_features_epoch
            return epoch >= last_offset

        await _until(has_come_there, f"port {port} to come as far as offset {last_offset}")
        await _until(lambda: _serves_all(client), f"port {port} to serve what it leads")


async def _serves_all(client: WireClient) -> bool:
    everything = api_request("metadata", topics=None, allow_auto_topic_creation=False)
    metadata = await client.ask(everything, 12)
    topics = [
        {
            "name": topic.name,
            "partitions": [
                {"partition_index": each.partition_index, "timestamp": LATEST}
                for each in topic.partitions
                if each.leader_id >= 0
            ],
        }
        for topic in metadata.topics
    ]
    answer = await client.ask(api_request("list_offsets", replica_id=-1, topics=topics), 5)
    codes = {each.error_code for topic in answer.topics for each in topic.partitions}
    return codes.isdisjoint(NOT_YET)


async def _until(condition: Callable[[], Awaitable[bool]], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not await condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {PATIENCE:.0f} s for {what}")
        await asyncio.sleep(0.005)
