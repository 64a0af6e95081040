"""
Waiting until a broker tells what its controller has decided.

Apache Kafka's controller answers when a change is committed. What the broker answers from is an
image of the metadata log that follows a little later, and on a busy machine not so little.
"""

from __future__ import annotations

import asyncio
import time

from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    RequestPartitionData,
    RequestTopicData,
)
from tests.interop.tools.toolbox import PATIENCE
from tests.support.wire_client import WireClient


def wait_until_caught_up(port: int) -> None:
    """
    Wait until the image of the broker on this *port* has all that is committed by now.

    Raises:
        TimeoutError: it does not get there.
    """
    asyncio.run(_wait(port))


async def _wait(port: int) -> None:
    deadline = time.monotonic() + PATIENCE
    async with await WireClient.open(port) as client:
        partition = RequestPartitionData(partition_index=0)
        log = RequestTopicData(topic_name="__cluster_metadata", partitions=[partition])
        [topic] = (await client.ask(DescribeQuorumRequest(topics=[log]), 0)).topics
        last_offset = topic.partitions[0].high_watermark - 1
        asked = ApiVersionsRequest(client_software_name="tour", client_software_version="1")
        # The epoch of the features is the offset up to which the image has come.
        while (await client.ask(asked, 3)).finalized_features_epoch < last_offset:
            if time.monotonic() > deadline:
                raise TimeoutError(f"port {port} did not come as far as offset {last_offset}")
            await asyncio.sleep(0.005)
