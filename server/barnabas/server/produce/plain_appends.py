"""
Serving Produce without decoding it first, where it is of the plain form: nearly always.

::

    frame --> batches --> partitions --> append each --> the frame of the answer
                 |            |               |
          of another form: the handler     refused, or waits for an fsync: the objects
                                           that the handler would answer with
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from barnabas.protocol.hot_messages.plain_produce import (
    FIRST_TOPIC_ID_VERSION,
    PlainProduce,
    ProducedBatch,
    plain_produce_answer,
    read_plain_produce,
)
from barnabas.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from barnabas.server.cluster.topic_names import INTERNAL_TOPICS
from barnabas.server.partitions.partition import Partition
from barnabas.server.produce.delayed import DelayedProduce, Uncommitted
from barnabas.server.produce.long_appends import append_long
from barnabas.server.produce.responses import ALL_REPLICAS, answer, append_failed, appended
from barnabas.server.produce.validation import is_plain
from barnabas.storage.errors import BatchTakesLong

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from barnabas.server.network.sender import Part
    from barnabas.server.partitions.partitions import Partitions
    from barnabas.server.requests.context import Parts
    from barnabas.server.scheduling.fair_queue import Client
    from barnabas.storage.log.append_info import LogAppendInfo

Produced: TypeAlias = "ProduceResponse | DelayedProduce"

_ACKNOWLEDGED: Final = (1, ALL_REPLICAS)


def append_plain(  # noqa: PLR0917  # names cost every request
    frame: memoryview,
    position: int,
    version: int,
    correlation_id: int,
    parts: Parts,
    connection: Client,
) -> list[Part] | Produced | Awaitable[Produced] | None:
    """
    Serve a request that has one batch for each of its partitions, and no transaction.

    Everything that could make a difference is looked at before anything is done: what is not plain
    is left to the handler, which finds errors in Kafka's order.
    """
    request = read_plain_produce(frame, position, version)
    if request is None or request.acks not in _ACKNOWLEDGED:
        return None
    partitions = _find(request, version, parts.partitions)
    if partitions is None:
        return None
    appends = _Appends(parts, partitions)
    for topic in request.topics:
        for batch in topic.batches:
            appends.append(batch)
    if appends.has_long:
        return appends.finish(request, connection)
    if not appends.others:
        return [plain_produce_answer(version, correlation_id, request)]
    return appends.answer(request)


def _find(request: PlainProduce, version: int, partitions: Partitions) -> list[Partition] | None:
    """
    The partition of each batch; None where a batch is not plain, or needs a closer look.
    """
    found: list[Partition] = []
    is_id = version >= FIRST_TOPIC_ID_VERSION
    for topic in request.topics:
        for batch in topic.batches:
            partition = partitions.find(topic.topic, batch.index, is_id=is_id)
            if (
                partition is None
                or partition.topic in INTERNAL_TOPICS
                or not is_plain(batch.records, version)
            ):
                return None
            found.append(partition)
    if len(found) == 1:
        return found
    # Of a partition that is there twice the last batch counts, and so on.
    topics = {topic.topic for topic in request.topics}
    is_once_each = len(topics) == len(request.topics) and len(set(found)) == len(found)
    return found if is_once_each else None


class _Appends:
    """
    The appends of one request.

    Invariant: ``others`` has what is to be answered for the batches that were refused, or that are
    not durable yet, and ``_long`` those that are not appended yet; all others know themselves where
    they are.
    """

    __slots__ = ("_long", "_next", "_partitions", "_parts", "_uncommitted", "others")

    def __init__(self, parts: Parts, partitions: list[Partition]) -> None:
        self._parts = parts
        self._partitions = partitions
        self._next = 0
        self._uncommitted: list[Uncommitted] = []
        self._long: list[tuple[ProducedBatch, Partition]] = []
        self.others: dict[ProducedBatch, PartitionProduceResponse] = {}

    def append(self, batch: ProducedBatch) -> None:
        """
        Append the next batch to the next partition.
        """
        partition = self._partitions[self._next]
        self._next += 1
        try:
            info = partition.append(batch.records)
        except BatchTakesLong:
            self._long.append((batch, partition))
        except Exception as error:  # whatever it is, the other partitions are served
            self.others[batch] = append_failed(partition, error, self._parts.metrics)
        else:
            self._appended(batch, partition, info)

    def _appended(self, batch: ProducedBatch, partition: Partition, info: LogAppendInfo) -> None:
        batch.base_offset = info.first_offset
        batch.log_append_time_ms = info.log_append_time
        batch.log_start_offset = info.log_start_offset
        next_offset = info.last_offset + 1
        if next_offset > partition.log.high_watermark:
            response = self.others[batch] = appended(batch.index, info)
            self._uncommitted.append(Uncommitted(partition, next_offset, response))

    @property
    def has_long(self) -> bool:
        """
        Whether there are batches that take long: they have to be waited for, with ``finish``.
        """
        return bool(self._long)

    async def finish(self, request: PlainProduce, connection: Client) -> Produced:
        """
        Append what takes long, and answer.
        """
        parts = self._parts
        for batch, partition in self._long:
            try:
                info = await append_long(
                    partition, batch.records, parts.workers.batches, connection
                )
            except Exception as error:  # whatever it is, the other partitions are served
                self.others[batch] = append_failed(partition, error, parts.metrics)
            else:
                self._appended(batch, partition, info)
        return self.answer(request)

    def answer(self, request: PlainProduce) -> Produced:
        """
        The answer as the handler would give it.
        """
        partitions = iter(self._partitions)
        responses: list[TopicProduceResponse] = []
        for topic in request.topics:
            partition = None
            told = []
            for batch in topic.batches:
                partition = next(partitions)
                told.append(self.others.get(batch) or _where(batch))
            assert partition is not None, "no topic is without a batch"
            responses.append(
                TopicProduceResponse(
                    name=partition.topic, topic_id=partition.topic_id, partition_responses=told
                )
            )
        return answer(
            responses, self._uncommitted, request.acks, request.timeout_ms, self._parts.clock
        )


def _where(batch: ProducedBatch) -> PartitionProduceResponse:
    return PartitionProduceResponse(
        index=batch.index,
        error_code=0,
        base_offset=batch.base_offset,
        log_append_time_ms=batch.log_append_time_ms,
        log_start_offset=batch.log_start_offset,
    )
