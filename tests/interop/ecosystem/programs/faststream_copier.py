"""
Copies a topic with FastStream: a record's offset is committed after its copy is acknowledged.
"""

import asyncio
import sys

from faststream import AckPolicy, FastStream
from faststream.kafka import KafkaBroker

bootstrap, source, target = sys.argv[1:]
broker = KafkaBroker(bootstrap, acks="all", enable_idempotence=True)


@broker.publisher(target)
@broker.subscriber(
    source,
    group_id="copier",
    auto_offset_reset="earliest",
    ack_policy=AckPolicy.NACK_ON_ERROR,
    session_timeout_ms=2000,
    heartbeat_interval_ms=500,
)
async def copy(value: int) -> int:
    return value


asyncio.run(FastStream(broker).run())
