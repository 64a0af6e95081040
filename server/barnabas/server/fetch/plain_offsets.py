"""
Serving ListOffsets without decoding it first, where it is of the plain form and asks for an end of
each log: what consumers ask when they start, and Spark's Kafka connector with each poll.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.protocol.errors import KafkaError
from barnabas.protocol.hot_messages.plain_list_offsets import (
    PlainListOffsets,
    read_plain_list_offsets,
)
from barnabas.server.partitions.partition import NO_EPOCH
from barnabas.storage.log.offsets_by_time import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP

if TYPE_CHECKING:
    from barnabas.protocol.hot_messages.plain_list_offsets import Found
    from barnabas.server.partitions.partition import Partition
    from barnabas.server.requests.context import Parts
    from barnabas.server.requests.repeated_requests import Question

_READ_UNCOMMITTED: Final = 0
_READ_COMMITTED: Final = 1


def read_ends_wanted(frame: memoryview, position: int, version: int) -> Question | None:
    """
    What a consumer asks for whose request is for the first or the last offset of partitions.
    """
    asked = read_plain_list_offsets(frame[position:].tobytes(), version)
    if asked is None or asked.isolation_level not in (_READ_UNCOMMITTED, _READ_COMMITTED):
        return None
    for _, _, _, timestamp in asked.asked:
        if timestamp not in (EARLIEST_TIMESTAMP, LATEST_TIMESTAMP):
            return None
    return _EndsWanted(asked)


class _EndsWanted:
    """
    The ends of logs that a consumer wants to know (a ``Question``).
    """

    __slots__ = ("_asked", "_is_committed", "_wanted")

    def __init__(self, asked: PlainListOffsets) -> None:
        self._asked = asked
        self._wanted = asked.asked
        self._is_committed = asked.isolation_level == _READ_COMMITTED

    def answer(self, correlation_id: bytes, parts: Parts) -> bytes | None:
        partitions = parts.partitions
        found: list[Found] = []
        try:
            for topic, index, leader_epoch, timestamp in self._wanted:
                partition = partitions.find(topic, index, is_id=False)
                if partition is None or partition.error is not None:
                    return None
                if leader_epoch not in (NO_EPOCH, partition.leader_epoch):
                    return None
                if timestamp == LATEST_TIMESTAMP:
                    found.append(self._last_of(partition))
                else:
                    found.append(_first_of(partition))
        except KafkaError:
            return None
        return self._asked.answer(correlation_id, found)

    def _last_of(self, partition: Partition) -> Found:
        log = partition.log
        offset = log.last_stable_offset if self._is_committed else log.high_watermark
        return offset, partition.leader_epoch


def _first_of(partition: Partition) -> Found:
    earliest = partition.log.fetch_offset_by_timestamp(EARLIEST_TIMESTAMP)
    assert earliest is not None, "a log has a first offset even while it is empty"
    epoch = NO_EPOCH if earliest.leader_epoch is None else earliest.leader_epoch
    return earliest.offset, epoch
