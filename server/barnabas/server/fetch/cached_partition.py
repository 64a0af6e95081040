"""
What a fetch asks of one partition.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias
from uuid import UUID

from barnabas.coordination.steps import ENTRIES_PER_STEP, checkpoint
from barnabas.protocol.codec.schema import ZERO_UUID
from barnabas.protocol.errors import (
    ErrorCode,
    InconsistentTopicId,
    KafkaError,
    UnknownTopicId,
)
from barnabas.protocol.hot_messages.fetch import topic_response
from barnabas.protocol.messages.fetch import (
    FIRST_TOPIC_ID_VERSION,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    PartitionData,
)
from barnabas.server.partitions.partition import NO_EPOCH, Partition, ReadableOffsets
from barnabas.server.partitions.partitions import Partitions
from barnabas.storage.log.fetch_isolation import FetchIsolation

CachedPartitionKey: TypeAlias = "tuple[str | UUID, int]"
"""
A partition, by its index and by the name or the id of its topic, whichever the request has.
"""

NOBODY: Final = -1
"""
The replica id of a client that is no broker.
"""
ERRONEOUS: Final = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
)
"""
The errors of partitions that nobody tries to read: they are not there, or not for this client.
"""
FIRST_REPLICA_STATE_VERSION: Final = 15

_NOT_TOLD: Final = -1
_NO_ERROR: Final = ErrorCode.NONE


class Empty:
    """
    A reading that found no records, and all that it was made of: as long as that is so, the same
    reading would find none again. Most partitions of most sessions are in that state.
    """

    __slots__ = ("data", "isolation", "leader_epoch", "request", "segment", "watermarks")

    def __init__(
        self,
        request: FetchPartition,
        isolation: FetchIsolation,
        leader_epoch: int,
        watermarks: ReadableOffsets,
        *,
        data: PartitionData,
        segment: int,
    ) -> None:
        """
        Args:
            segment: the base offset of the one that would be read from.
        """
        self.request = request
        self.isolation = isolation
        self.leader_epoch = leader_epoch
        self.watermarks = watermarks
        self.data = data
        self.segment = segment

    def is_still_so(
        self, request: FetchPartition, isolation: FetchIsolation, partition: Partition
    ) -> bool:
        """
        Whether a new reading can be spared.
        """
        return (
            self.request is request
            and self.isolation is isolation
            and partition.error is None
            and self.leader_epoch == partition.leader_epoch
            and self.watermarks.are(partition.watermarks())
        )


class CachedPartition:
    """
    A partition that a fetch asks for, and where it is, or why it is nowhere.

    A session keeps it from one fetch to the next (Kafka ``FetchSession.CachedPartition``), together
    with what its client was told of it.

    Invariants:

    1. Once ``locate`` was called, ``partition`` is None exactly if ``error`` is set.
    2. ``topic`` is None until a topic with that id is seen, and stays what it was then: who fetches
       on after the topic was deleted hears that its name is unknown, and after it was created
       again, that the id is not that name's.
    """

    __slots__ = (
        "empty",
        "error",
        "high_watermark",
        "key",
        "log_start_offset",
        "partition",
        "request",
        "topic",
        "topic_id",
    )

    def __init__(
        self, key: CachedPartitionKey, topic: str | None, topic_id: UUID, request: FetchPartition
    ) -> None:
        self.key = key
        self.topic = topic
        self.topic_id = topic_id
        self.request = request
        self.partition: Partition | None = None
        self.error = _NO_ERROR
        self.high_watermark = _NOT_TOLD
        self.log_start_offset = _NOT_TOLD
        self.empty: Empty | None = None

    def locate(self, partitions: Partitions, replica_id: int) -> None:
        """
        Find the partition, unless it was found before and is still the one.
        """
        known = self.partition
        if known is not None and known.error is None and replica_id <= NOBODY:
            return
        try:
            found = self._find(partitions)
        except KafkaError as error:
            self.partition, self.error = None, error.code
            return
        if replica_id <= NOBODY:
            self.partition, self.error = found, _NO_ERROR
        else:
            self.partition, self.error = None, _no_follower(self.request, found)

    def forbid(self) -> None:
        """
        The client may not read the partition, as long as ``locate`` is not called again.
        """
        self.partition, self.error = None, ErrorCode.TOPIC_AUTHORIZATION_FAILED

    def _find(self, partitions: Partitions) -> Partition:
        name, index = self.topic, self.key[1]
        if name is None:
            name = self.topic = partitions.name_of(self.topic_id)
            if name is None:
                raise UnknownTopicId
        found = partitions.get(name, index) or partitions.expect(name, index)
        if self.topic_id is not ZERO_UUID and self.topic_id != found.topic_id:
            raise InconsistentTopicId
        return found

    def told(self, high_watermark: int, log_start_offset: int) -> None:
        """
        The client is going to know this.
        """
        self.high_watermark = high_watermark
        self.log_start_offset = log_start_offset

    def has_news(self, data: PartitionData) -> bool:
        """
        Whether an incremental answer has to say this (Kafka ``maybeUpdateResponseData``), which the
        client then knows. An error comes without watermarks, so that the end of it is news as well.
        """
        if not self.is_news(data):
            return False
        self.told(data.high_watermark, data.log_start_offset)
        return True

    def is_news(self, data: PartitionData) -> bool:
        """
        Whether an incremental answer would have to say this.
        """
        return bool(
            data.records
            or data.error_code
            or data.high_watermark != self.high_watermark
            or data.log_start_offset != self.log_start_offset
            or data.diverging_epoch.epoch >= 0
        )


def replica_id_of(request: FetchRequest, version: int) -> int:
    """
    The broker that fetches as a follower, ``NOBODY`` if a client does.
    """
    if version < FIRST_REPLICA_STATE_VERSION:
        return request.replica_id
    return request.replica_state.replica_id


async def locate(
    wanted: list[CachedPartition], partitions: Partitions, replica_id: int, *, are_allowed: bool
) -> bool:
    """
    Find the partitions, and return whether there are some that nobody tries to read.

    Args:
        are_allowed: the client may read all of them, so that fetches of them count.
    """
    has_erroneous = False
    for number, each in enumerate(wanted, 1):
        if number % ENTRIES_PER_STEP == 0:
            await checkpoint()
        each.locate(partitions, replica_id)
        if each.partition is None:
            has_erroneous = has_erroneous or each.error in ERRONEOUS
        elif are_allowed:
            each.partition.fetches += 1
    return has_erroneous


def put_erroneous_last(wanted: list[CachedPartition]) -> None:
    """
    Let the partitions that nobody tries to read come last, as Kafka answers for them.
    """
    wanted.sort(key=lambda each: each.error in ERRONEOUS)


async def asked_for(
    request: FetchRequest, version: int
) -> dict[CachedPartitionKey, CachedPartition]:
    """
    The partitions of a request, in its order. Of one that is named twice, the last is meant.
    """
    asked: dict[CachedPartitionKey, CachedPartition] = {}
    by_id = version >= FIRST_TOPIC_ID_VERSION
    number = 0
    for topic in request.topics:
        name, topic_id = (None, topic.topic_id) if by_id else (topic.topic, ZERO_UUID)
        for partition in topic.partitions:
            number += 1
            if number % ENTRIES_PER_STEP == 0:
                await checkpoint()
            key = (topic_id if name is None else name), partition.partition
            asked[key] = CachedPartition(key, name, topic_id, partition)
    return asked


def forgotten_by(request: FetchRequest, version: int) -> Iterator[CachedPartitionKey]:
    """
    The partitions that a session shall have no longer.
    """
    by_id = version >= FIRST_TOPIC_ID_VERSION
    for topic in request.forgotten_topics_data:
        for index in topic.partitions:
            yield (topic.topic_id if by_id else topic.topic), index


async def by_topic(
    wanted: Sequence[CachedPartition], partitions: Sequence[PartitionData]
) -> list[FetchableTopicResponse]:
    """
    The partitions of an answer, in order; those of one topic that follow each other go together.
    """
    topics: list[FetchableTopicResponse] = []
    last: str | UUID | None = None
    for number, each in enumerate(wanted):
        if number % ENTRIES_PER_STEP == ENTRIES_PER_STEP - 1:
            await checkpoint()
        data = partitions[number]
        key = each.key[0]
        if key != last:
            last = key
            topics.append(topic_response(each.topic or "", each.topic_id, [data]))
        else:
            topics[-1].partitions.append(data)
    return topics


def _no_follower(partition: FetchPartition, found: Partition) -> ErrorCode:
    """
    No other broker has a replica, so one that fetches as a follower is not one that is assigned
    (Kafka ``Partition.followerReplicaOrThrow``).
    """
    if partition.current_leader_epoch == NO_EPOCH:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if partition.current_leader_epoch < found.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    return ErrorCode.UNKNOWN_LEADER_EPOCH
