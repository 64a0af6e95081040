"""
ListOffsets: which offset is first, last, or the first from a time on.

The ends of a log are known in memory; for a time its files are searched, in the executor. The rules
are those of Kafka's ``ReplicaManager.fetchOffset`` and ``Partition.fetchOffsetForTimestamp``.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Coroutine
from typing import Any, Final

from barnabas.protocol.errors import (
    ErrorCode,
    InvalidRequest,
    KafkaError,
    UnknownServerError,
    UnsupportedVersion,
)
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from barnabas.server.context import Context
from barnabas.server.handlers import handles
from barnabas.server.partition import Partition

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4

FIRST_VERSION: Final = {LATEST: 1, EARLIEST: 1, MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, -5: 9, -6: 11}
"""
The special timestamps. -5 and -6 ask for what tiered storage has (KIP-405), which is nothing.
"""

CONSUMER: Final = -1
NONE: Final = -1


def error_response(
    request: ListOffsetsRequest, _version: int, code: ErrorCode, _message: str | None
) -> ListOffsetsResponse:
    """
    The same error for every partition.
    """
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[_error(partition, code) for partition in topic.partitions],
            )
            for topic in request.topics
        ]
    )


@handles(ListOffsetsRequest, error_response=error_response)
def list_offsets(
    request: ListOffsetsRequest, context: Context
) -> ListOffsetsResponse | Coroutine[Any, Any, ListOffsetsResponse]:
    # Without any partition it is not looked at.
    if request.topics and request.isolation_level not in (0, 1):
        raise UnknownServerError(f"isolation level {request.isolation_level} is unknown")
    query = _Query(request, context)
    if any(
        partition.timestamp >= 0 or partition.timestamp == MAX_TIMESTAMP
        for topic in request.topics
        for partition in topic.partitions
    ):
        return _search(query, context)
    return query.answer()


async def _search(query: _Query, context: Context) -> ListOffsetsResponse:
    return await asyncio.get_running_loop().run_in_executor(context.io, query.answer)


class _Query:
    """
    What a ListOffsets request asks for, with the partitions it asks of.
    """

    __slots__ = ("_asked", "_request", "_version")

    def __init__(self, request: ListOffsetsRequest, context: Context) -> None:
        self._request = request
        self._version = context.version
        times_asked = Counter(
            (topic.name, partition.partition_index)
            for topic in request.topics
            for partition in topic.partitions
        )
        self._asked: dict[tuple[str, int], Partition | KafkaError] = {}
        for (topic, index), times in times_asked.items():
            try:
                if times > 1:
                    raise InvalidRequest(f"{topic}-{index} is in the request {times} times")
                self._asked[topic, index] = context.partitions.expect(topic, index)
            except KafkaError as error:
                self._asked[topic, index] = error

    def answer(self) -> ListOffsetsResponse:
        """
        Look everything up, reading files where that is needed.
        """
        return ListOffsetsResponse(
            topics=[
                ListOffsetsTopicResponse(
                    name=topic.name,
                    partitions=[
                        self._look_up(self._asked[topic.name, partition.partition_index], partition)
                        for partition in topic.partitions
                    ],
                )
                for topic in self._request.topics
            ]
        )

    def _look_up(
        self, partition: Partition | KafkaError, asked: ListOffsetsPartition
    ) -> ListOffsetsPartitionResponse:
        try:
            if isinstance(partition, KafkaError):
                raise partition
            if asked.timestamp < 0 and FIRST_VERSION.get(asked.timestamp, 99) > self._version:
                raise UnsupportedVersion(f"timestamp {asked.timestamp} in v{self._version}")
            partition.check_leader_epoch(asked.current_leader_epoch)
            return self._find(partition, asked)
        except KafkaError as error:
            return _error(asked, error.code)

    def _find(
        self, partition: Partition, asked: ListOffsetsPartition
    ) -> ListOffsetsPartitionResponse:
        log = partition.log
        if self._request.replica_id != CONSUMER:
            end = log.log_end_offset
        elif self._request.isolation_level:
            end = log.last_stable_offset
        else:
            end = log.high_watermark
        timestamp, offset, epoch = NONE, NONE, NONE
        if asked.timestamp == LATEST:
            offset, epoch = end, partition.leader_epoch
        else:
            found = log.fetch_offset_by_timestamp(asked.timestamp)
            bounded = asked.timestamp not in (EARLIEST, EARLIEST_LOCAL)
            if found is not None and not (bounded and found.offset >= end):
                timestamp, offset = found.timestamp, found.offset
                epoch = NONE if found.leader_epoch is None else found.leader_epoch
        return ListOffsetsPartitionResponse(
            partition_index=asked.partition_index,
            error_code=0,
            timestamp=timestamp,
            offset=offset,
            leader_epoch=epoch,
        )


def _error(asked: ListOffsetsPartition, code: ErrorCode) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=asked.partition_index, error_code=code)
