"""
ListOffsets: which offset is first, last, or the first from a time on.

The ends of a log are known in memory; for a time its files are searched, in the executor.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

import asyncio

from barnabas.coordination.security.acl.permissions import DESCRIBE_TOPIC
from barnabas.coordination.steps import finished_unless
from barnabas.protocol.errors import UnknownServerError
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from barnabas.server.fetch.offsets import OffsetsQuery
from barnabas.server.requests.authorization import asks
from barnabas.server.requests.authorized import partition_by_authorized
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles


@handles(ListOffsetsRequest, needs=asks(DESCRIBE_TOPIC))
async def list_offsets(request: ListOffsetsRequest, context: RequestContext) -> ListOffsetsResponse:
    topics = request.topics
    refused: list[ListOffsetsTopic] = []
    if context.broker.authorizer is not None:
        topics, refused = await partition_by_authorized(
            context, DESCRIBE_TOPIC, topics, lambda topic: topic.name
        )
    # Without any partition it is not looked at.
    if topics and request.isolation_level not in (0, 1):
        raise UnknownServerError(f"isolation level {request.isolation_level} is unknown")
    query = OffsetsQuery(request, refused)
    await query.locate(topics, context.broker.partitions, context.version)
    if not query.reads_files:
        return await query.answer()
    client = context.client

    def look_up() -> ListOffsetsResponse:
        # Each step may decompress a batch: a client that has left must not delay others.
        found = finished_unless(query.answer(), lambda: client.is_closing)
        return found or ListOffsetsResponse(topics=[])

    return await asyncio.get_running_loop().run_in_executor(context.broker.workers.reads, look_up)
