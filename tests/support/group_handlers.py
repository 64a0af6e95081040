"""
The handlers of requests about groups, on a coordinator in memory: bytes in, bytes out.
"""

from __future__ import annotations

import importlib
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from barnabas.protocol.codec.schema import Message
from barnabas.server.scheduling.turns import Turns
from tests.support.group_world import World
from tests.support.requests import handled, request_context

MODULES = (
    "delete_groups",
    "describe_groups",
    "heartbeat",
    "join_group",
    "leave_group",
    "list_groups",
    "offset_commit",
    "offset_delete",
    "offset_fetch",
    "sync_group",
)


class HandlerBroker:
    """
    Takes requests as a connection would hand them to their handlers.

    Args:
        partition_counts: the topics that exist.
        options: those of ``BrokerConfig``, by attribute.
    """

    def __init__(self, partition_counts: dict[str, int], **options: Any) -> None:
        for name in MODULES:
            importlib.import_module(f"barnabas.server.handlers.{name}")
        self.world = World(**options)
        self.world.start()
        self.topics = self.world.topics
        for number, (name, count) in enumerate(partition_counts.items()):
            self.topics.put(name, count, UUID(int=7 + number))

    async def close(self) -> None:
        self.world.coordinator.stop()
        await self.world.background.stop()
        self.world.io.shutdown()

    async def ask(self, request: Message, version: int) -> Any:
        """
        What a client gets that sends the bytes of this request.
        """
        broker = SimpleNamespace(
            topics=self.topics, groups=self.world.coordinator, turns=Turns(), authorizer=None
        )
        return await handled(request, request_context(broker, version))
