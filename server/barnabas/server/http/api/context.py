"""
What the operations of the API work on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar

from barnabas.protocol.errors import KafkaError, UnknownTopicOrPartition
from barnabas.server.http.api.opened_logs import OpenedLogs
from barnabas.server.http.api.rates import TopicRates
from barnabas.server.http.guard import Refused
from barnabas.storage.config.option_values import ConfigError
from barnabas.storage.explain.known import ExplainError, FilesChanged
from barnabas.storage.threads.turns import SHORT_TURNS

if TYPE_CHECKING:
    from barnabas.coordination.cluster.image import Topic
    from barnabas.server.http.observed import ObservedBroker
    from barnabas.server.partitions.partition import Partition
    from barnabas.server.requests.broker_parts import BrokerParts

T = TypeVar("T")

THREADS: Final = 2
"""
Work that may block is done by so many threads: each keeps the event loop from the interpreter for
a while.
"""
_DIGITS: Final = 19
"""No number of a path has more."""


class ApiContext:
    """
    A broker, and the threads that read its files for requests over HTTP.
    """

    def __init__(self, broker: ObservedBroker) -> None:
        self.broker = broker
        self.executor = ThreadPoolExecutor(THREADS, thread_name_prefix="http")
        self.rates = TopicRates(broker.clock.monotonic)
        self.opened_logs = OpenedLogs()
        self.wakers: set[Callable[[], None]] = set()
        """Each ends the wait of one request for records."""

    def wake_all(self) -> None:
        """
        Let requests that wait for records answer at once.
        """
        for wake in tuple(self.wakers):
            wake()

    def close(self) -> None:
        """
        Start no more work, and do not wait for the running one.
        """
        self.opened_logs.clear()
        self.executor.shutdown(wait=False, cancel_futures=True)

    @property
    def parts(self) -> BrokerParts:
        """
        The parts of a broker that serves clients.

        Raises:
            Refused: it does not.
        """
        parts = self.broker.parts
        if parts is None or not self.broker.readiness.is_ready:
            raise Refused(503, f"the broker waits for {self.broker.readiness.waits_for}")
        return parts

    @property
    def are_records_allowed(self) -> bool:
        """
        Whether the contents of records may be seen.
        """
        return self.broker.config.barnabas_http_records

    async def in_thread(self, work: Callable[[], T]) -> T:
        """
        The result of *work*, which may block.

        Raises:
            Exception: what the work raises.
        """

        def patient() -> T:
            with SHORT_TURNS:
                return work()

        return await asyncio.get_running_loop().run_in_executor(self.executor, patient)

    async def in_turns(self, steps: Coroutine[Any, Any, T]) -> T:
        """
        The result of *steps*, which look at what the broker has in memory.

        Raises:
            Exception: the steps raised it.
        """
        return await self.broker.turns.finish(steps, 1 + len(self.broker.partitions))

    def topic(self, name: str) -> Topic:
        """
        The topic with that name.

        Raises:
            Refused: there is none.
        """
        topic = self.parts.topics.get(name)
        if topic is None:
            raise Refused(404, f"there is no topic {name}: GET /api/v1/topics lists all")
        return topic

    def partition_index(self, topic: str, text: str) -> int:
        """
        The number of a partition in a path.

        Raises:
            Refused: there is no such partition.
        """
        partitions = self.topic(topic).partitions
        index = number_in(text)
        if index is None or index not in partitions:
            raise Refused(404, f"the topic {topic} has no partition {text}, but {len(partitions)}")
        return index

    def partition(self, topic: str, text: str) -> Partition:
        """
        The open partition of a path.

        Raises:
            Refused: there is no such partition, or it is offline.
        """
        index = self.partition_index(topic, text)
        try:
            partition = self.parts.partitions.expect(topic, index)
            if partition.error is not None:
                raise partition.error.with_traceback(None)
        except KafkaError as error:
            raise Refused(503, f"{topic}-{index} is offline: {error}") from None
        return partition


def number_in(text: str) -> int | None:
    """
    The number that a part of a path is; None if it is none.
    """
    is_number = text.isascii() and text.isdecimal() and len(text) <= _DIGITS
    with suppress(ValueError):
        return int(text) if is_number else None
    return None


def refusal(error: Exception) -> Refused | None:
    """
    The answer to an error of the broker or its files.
    """
    if isinstance(error, ConfigError):
        return Refused(400, str(error))
    if isinstance(error, FilesChanged):
        return Refused(503, str(error))
    if isinstance(error, ExplainError | UnknownTopicOrPartition):
        return Refused(404, str(error) or "there is no such topic or partition")
    if isinstance(error, KafkaError):
        return Refused(503, str(error) or error.code.sentence)
    if isinstance(error, FileNotFoundError):
        return Refused(404, "the broker has just removed that file")
    return None
