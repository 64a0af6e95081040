"""
Serving ListOffsets without decoding it first, where it is of the plain form and asks for an end of
each log: what consumers ask when they start, and Spark's Kafka connector with each poll.

This module is compiled when there is a compiler.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.protocol.errors import KafkaError
from barnabas.protocol.plain_list_offsets import (
    PlainListOffsets,
    WantedOffset,
    plain_list_offsets_answer,
    read_plain_list_offsets,
)
from barnabas.server.partition import NO_EPOCH, Partition
from barnabas.storage.offsets_by_time import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP

if TYPE_CHECKING:
    from barnabas.server.context import Parts
    from barnabas.server.partitions import Partitions

_CONSUMER: Final = -1
_READ_UNCOMMITTED: Final = 0
_READ_COMMITTED: Final = 1


def find_plain(
    frame: memoryview, position: int, version: int, correlation_id: int, parts: Parts
) -> bytes | None:
    """
    Serve a request of a consumer for the first or the last offset of partitions that are well.

    Nothing is changed by looking, so whatever is found to be otherwise is left to the handler,
    which looks again and answers with Kafka's errors.
    """
    request = read_plain_list_offsets(frame, position, version)
    if request is None or request.replica_id != _CONSUMER:
        return None
    try:
        if _find_all(request, parts.partitions):
            return plain_list_offsets_answer(correlation_id, request)
    except KafkaError:
        pass
    return None


def _find_all(request: PlainListOffsets, partitions: Partitions) -> bool:
    """
    Find what *request* wants; False if that is not an end of each of its partitions, once.
    """
    if request.isolation_level not in (_READ_UNCOMMITTED, _READ_COMMITTED):
        return False
    committed = request.isolation_level == _READ_COMMITTED
    found: list[Partition] = []
    for topic in request.topics:
        for wanted in topic.partitions:
            partition = partitions.find(topic.name, wanted.index, is_id=False)
            if partition is None or not _find(wanted, partition, committed=committed):
                return False
            found.append(partition)
    if len(found) == 1:
        return True
    # A topic that is there twice is answered once.
    topics = {topic.name for topic in request.topics}
    return len(topics) == len(request.topics) and len(set(found)) == len(found)


def _find(wanted: WantedOffset, partition: Partition, *, committed: bool) -> bool:
    if partition.error is not None or wanted.leader_epoch not in (NO_EPOCH, partition.leader_epoch):
        return False
    log = partition.log
    if wanted.timestamp == LATEST_TIMESTAMP:
        wanted.offset = log.last_stable_offset if committed else log.high_watermark
        wanted.epoch = partition.leader_epoch
        return True
    if wanted.timestamp != EARLIEST_TIMESTAMP:
        return False
    earliest = log.fetch_offset_by_timestamp(EARLIEST_TIMESTAMP)
    assert earliest is not None, "a log has a first offset even while it is empty"
    wanted.offset = earliest.offset
    wanted.epoch = NO_EPOCH if earliest.leader_epoch is None else earliest.leader_epoch
    return True
