"""
The handlers of requests about groups, on a coordinator in memory: bytes in, bytes out.
"""

from __future__ import annotations

import importlib
import inspect
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

from barnabas.protocol.codec.codec import decode, encode
from barnabas.protocol.codec.schema import Message
from barnabas.server.purgatory import Delayed
from barnabas.server.requests.registry import HANDLERS
from barnabas.server.scheduling.turns import Steps, Turns, finished
from tests.support.group_world import World
from tests.support.requests import request_context

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


class Topics:
    """
    Topics that only have a name, an id and partitions.
    """

    def __init__(self, partition_counts: dict[str, int]) -> None:
        self.all: list[Any] = []
        for number, (name, count) in enumerate(partition_counts.items()):
            self.add(name, UUID(int=7 + number), count)

    def add(self, name: str, topic_id: UUID, partition_count: int = 1) -> None:
        partitions = dict.fromkeys(range(partition_count))
        self.all.append(SimpleNamespace(name=name, id=topic_id, partitions=partitions))

    def get(self, name: str) -> Any:
        return next((topic for topic in self.all if topic.name == name), None)

    def get_by_id(self, topic_id: UUID) -> Any:
        return next((topic for topic in self.all if topic.id == topic_id), None)


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
        self.topics = Topics(partition_counts)

    async def close(self) -> None:
        self.world.coordinator.stop()
        await self.world.background.stop()
        self.world.io.shutdown()

    async def ask(self, request: Message, version: int) -> Any:
        """
        What a client gets that sends the bytes of this request.
        """
        registration = HANDLERS[request.api.key]
        broker = SimpleNamespace(
            topics=self.topics, groups=self.world.coordinator, turns=Turns(), authorizer=None
        )
        context = request_context(broker, version)
        arrived = decode(type(request), version, encode(request, version))
        answer: Any = registration.handler(arrived, context)
        if inspect.isgenerator(answer):
            answer = finished(cast(Steps[Any], answer))
        if inspect.iscoroutine(answer):
            answer = await answer
        if isinstance(answer, Delayed):
            heard: list[Any] = []
            answer.then(heard.append)
            (answer,) = heard
        assert isinstance(answer, registration.response)
        return decode(registration.response, version, encode(answer, version))
