"""
Appending batches that take long to examine: a thread does that.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any

from barnabas.storage.errors import BatchTakesLong

if TYPE_CHECKING:
    from barnabas.server.partitions.partition import Partition
    from barnabas.storage.log.append_info import LogAppendInfo


async def append_long(
    partition: Partition, records: memoryview, examiner: Executor, **options: Any
) -> LogAppendInfo:
    """
    Let the *examiner* look at a batch, and append it then, with the *options* of
    ``Partition.append``.

    Raises:
        KafkaError: as for ``Partition.append``.
    """
    loop = asyncio.get_running_loop()
    while True:
        examined = await loop.run_in_executor(examiner, partition.log.examine, records)
        try:
            return partition.append(records, examined=examined, **options)
        except BatchTakesLong:  # the topic has another configuration by now
            continue
