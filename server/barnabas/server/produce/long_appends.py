"""
Appending batches that take long to examine: a thread does that.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from barnabas.storage.errors import BatchTakesLong

if TYPE_CHECKING:
    from barnabas.server.partitions.partition import Partition
    from barnabas.server.scheduling.fair_queue import Client, FairQueue
    from barnabas.storage.log.append_info import LogAppendInfo


async def append_long(
    partition: Partition, records: memoryview, examiner: FairQueue, client: Client, **options: Any
) -> LogAppendInfo:
    """
    Let the *examiner* look at a batch of *client* when it is its turn, and append it then, with the
    *options* of ``Partition.append``.

    Raises:
        KafkaError: as for ``Partition.append``.
        asyncio.CancelledError: the client is gone, see ``FairQueue``.
    """
    while True:
        examined = await examiner.do(client, partial(partition.log.examine, records), len(records))
        try:
            return partition.append(records, examined=examined, **options)
        except BatchTakesLong:  # the topic has another configuration by now
            continue
