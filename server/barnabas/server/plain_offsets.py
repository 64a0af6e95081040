"""
Serving ListOffsets without decoding it first, where it is of the plain form and asks for an end of
each log: what consumers ask when they start, and Spark's Kafka connector with each poll.

This module is compiled when there is a compiler.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.protocol.errors import KafkaError
from barnabas.protocol.plain_list_offsets import answer_plain_list_offsets
from barnabas.server.partition import NO_EPOCH
from barnabas.storage.offsets_by_time import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP

if TYPE_CHECKING:
    from barnabas.server.context import Parts
    from barnabas.server.partitions import Partitions
    from barnabas.server.sender import Part

_READ_UNCOMMITTED: Final = 0
_READ_COMMITTED: Final = 1


def find_plain(
    frame: memoryview, position: int, version: int, correlation_id: int, parts: Parts
) -> list[Part] | None:
    """
    Serve a request of a consumer for the first or the last offset of partitions that are well.

    Nothing is changed by looking, so whatever is found to be otherwise is left to the handler,
    which looks again and answers with Kafka's errors.
    """
    find = _Ends(parts.partitions).find
    try:
        frame_of_answer = answer_plain_list_offsets(frame, position, version, correlation_id, find)
    except KafkaError:
        return None
    return None if frame_of_answer is None else [frame_of_answer]


class _Ends:
    """
    The ends of the logs of *partitions*.
    """

    __slots__ = ("_partitions",)

    def __init__(self, partitions: Partitions) -> None:
        self._partitions = partitions

    def find(
        self, topic: bytes, index: int, leader_epoch: int, timestamp: int, isolation_level: int, /
    ) -> tuple[int, int] | None:
        """
        The offset of the end that *timestamp* means, and the leader epoch there (``FindOffset``).
        """
        partition = self._partitions.find(topic, index, is_id=False)
        if partition is None or partition.error is not None:
            return None
        if leader_epoch not in (NO_EPOCH, partition.leader_epoch):
            return None
        if isolation_level not in (_READ_UNCOMMITTED, _READ_COMMITTED):
            return None
        log = partition.log
        if timestamp == LATEST_TIMESTAMP:
            committed = isolation_level == _READ_COMMITTED
            offset = log.last_stable_offset if committed else log.high_watermark
            return offset, partition.leader_epoch
        if timestamp != EARLIEST_TIMESTAMP:
            return None
        earliest = log.fetch_offset_by_timestamp(EARLIEST_TIMESTAMP)
        assert earliest is not None, "a log has a first offset even while it is empty"
        epoch = NO_EPOCH if earliest.leader_epoch is None else earliest.leader_epoch
        return earliest.offset, epoch
