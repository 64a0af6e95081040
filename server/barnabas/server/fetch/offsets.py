"""
The offsets that a ListOffsets request asks for: the first, the last, or the first from a time on.

The ends of a log are known in memory; for a time its files are searched. The rules are those of
Kafka's ``ReplicaManager.fetchOffset`` and ``Partition.fetchOffsetForTimestamp``.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from typing import Final

from barnabas.coordination.steps import ENTRIES_PER_STEP, checkpoint
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)
from barnabas.protocol.structs import NamedTuple
from barnabas.server.partitions.partition import Partition
from barnabas.server.partitions.partitions import Partitions

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


class _Asked(NamedTuple):
    """
    One partition of a request, and where it is or why it is not looked for.
    """

    partition: ListOffsetsPartition
    where: Partition | ErrorCode


def _locate(
    topic: str, asked: ListOffsetsPartition, partitions: Partitions, version: int
) -> Partition | ErrorCode:
    if asked.timestamp < 0 and FIRST_VERSION.get(asked.timestamp, 99) > version:
        return ErrorCode.UNSUPPORTED_VERSION
    try:
        return partitions.expect(topic, asked.partition_index)
    except KafkaError as error:
        return error.code


class OffsetsQuery:
    """
    The partitions of a ListOffsets request, and the offset that it asks of each.

    Each partition is answered once, and a topic of which nothing is asked not at all, but for those
    that the client may not describe: they are answered as they are asked for.
    """

    __slots__ = ("_asked", "_refused", "_request", "reads_files")

    def __init__(self, request: ListOffsetsRequest, refused: list[ListOffsetsTopic]) -> None:
        """
        Args:
            refused: topics that the client may not describe.
        """
        self._request = request
        self._refused = refused
        self._asked: dict[str, dict[int, _Asked]] = {}
        self.reads_files = False

    async def locate(
        self, topics: list[ListOffsetsTopic], partitions: Partitions, version: int
    ) -> None:
        """
        Find the partitions.
        """
        number = 0
        for topic in topics:
            for asked in topic.partitions:
                number += 1
                if number % ENTRIES_PER_STEP == 0:
                    await checkpoint()
                self.reads_files |= asked.timestamp >= 0 or asked.timestamp == MAX_TIMESTAMP
                index = asked.partition_index
                of_topic = self._asked.setdefault(topic.name, {})
                where = (
                    ErrorCode.INVALID_REQUEST  # It is in the request twice.
                    if index in of_topic
                    else _locate(topic.name, asked, partitions, version)
                )
                of_topic[index] = _Asked(asked, where)

    async def answer(self) -> ListOffsetsResponse:
        """
        Look everything up, reading files where that is needed.
        """
        topics = []
        number = 0
        for name, of_topic in self._asked.items():
            partitions = []
            for asked in of_topic.values():
                partitions.append(self._look_up(asked))
                number += 1
                if self.reads_files or number % ENTRIES_PER_STEP == 0:
                    await checkpoint()
            topics.append(ListOffsetsTopicResponse(name=name, partitions=partitions))
        for topic in self._refused:
            partitions = []
            for partition in topic.partitions:
                partitions.append(_error(partition, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
                number += 1
                if number % ENTRIES_PER_STEP == 0:
                    await checkpoint()
            topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=partitions))
        return ListOffsetsResponse(topics=topics)

    def _look_up(self, one: _Asked) -> ListOffsetsPartitionResponse:
        asked, partition = one
        if isinstance(partition, ErrorCode):
            return _error(asked, partition)
        try:
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
