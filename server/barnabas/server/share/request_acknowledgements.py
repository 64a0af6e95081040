"""
The acknowledgements of one request, ShareFetch or ShareAcknowledge: checked, done, and their
results by partition.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from barnabas.coordination.share.acknowledging import Acknowledgement
from barnabas.coordination.share.record_state import AcknowledgeType
from barnabas.coordination.share.sessions import TopicIdPartition
from barnabas.coordination.steps import checkpoint, map_in_turns
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.structs import NamedTuple
from barnabas.server.scheduling.turns import settle

if TYPE_CHECKING:
    from barnabas.server.partitions.partitions import Partitions
    from barnabas.server.share.manager import SharePartitionManager


class AcknowledgeResult(NamedTuple):
    """
    What a client is told of its acknowledgements of a partition.
    """

    code: int
    message: str | None = None


class PendingAcknowledgements:
    """
    The acknowledgements of one request, until all of them are written.
    """

    __slots__ = ("_all", "_pending", "results")

    def __init__(self) -> None:
        self.results: dict[TopicIdPartition, AcknowledgeResult] = {}
        self._pending = 1
        self._all: asyncio.Future[None] | None = None

    def expect(self) -> None:
        """
        Another one is being written.
        """
        self._pending += 1

    def settle(self, where: TopicIdPartition, error: KafkaError | None) -> None:
        """
        One that was expected is written, or has failed.
        """
        if error is None:
            self.results[where] = AcknowledgeResult(0)
        else:
            self.results[where] = AcknowledgeResult(error.code, str(error) or error.code.sentence)
        self._done()

    def refuse(self, where: TopicIdPartition, code: ErrorCode) -> None:
        """
        One is not even tried.
        """
        self.results[where] = AcknowledgeResult(code)

    async def settled(self) -> None:
        """
        Return when all are written. No other one will be expected.
        """
        self._done()
        if self._pending:
            self._all = asyncio.get_running_loop().create_future()
            await self._all

    def _done(self) -> None:
        self._pending -= 1
        if not self._pending and self._all is not None:
            settle(self._all, None)


async def acknowledge(
    request: Any,
    pending: PendingAcknowledgements,
    manager: SharePartitionManager,
    partitions: Partitions,
    may_read: Callable[[str], bool],
    *,
    has_renew: bool,
) -> None:
    """
    Do what a request acknowledges, and gather the results in *pending* (Kafka
    ``KafkaApis.handleAcknowledgements``).

    Args:
        request: a ShareFetch or a ShareAcknowledge.
        may_read: returns whether the client may read a topic.
        has_renew: the version of the request has acknowledgements that renew.
    """
    empty = []
    is_any_done = False
    for topic in request.topics:
        await checkpoint()
        name = partitions.name_of(topic.topic_id)
        # Of a partition that is named twice the last one counts.
        for partition in {each.partition_index: each for each in topic.partitions}.values():
            await checkpoint()
            where = (topic.topic_id, partition.partition_index)
            batches = await map_in_turns(_of_batch, partition.acknowledgement_batches)
            if name is None:
                pending.refuse(where, ErrorCode.UNKNOWN_TOPIC_ID)
            elif not await are_valid(batches, has_renew=has_renew, is_renew=request.is_renew_ack):
                pending.refuse(where, ErrorCode.INVALID_REQUEST)
            elif not may_read(name):
                pending.refuse(where, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            elif not partitions.knows(name, where[1]):
                pending.refuse(where, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            elif batches:
                is_any_done = True
                _acknowledge(request, where, batches, pending, manager)
            else:
                empty.append(where)
    # Kafka answers for a partition without acknowledgements only beside others.
    for where in empty if is_any_done else ():
        await checkpoint()
        pending.refuse(where, ErrorCode.NONE)


def _acknowledge(
    request: Any,
    where: TopicIdPartition,
    batches: Sequence[Acknowledgement],
    pending: PendingAcknowledgements,
    manager: SharePartitionManager,
) -> None:
    share_partition = manager.get(request.group_id, *where)
    if share_partition is None:
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        pending.results[where] = AcknowledgeResult(code, code.sentence)
        return
    pending.expect()
    share_partition.acknowledge(request.member_id, batches, partial(pending.settle, where))


def _of_batch(batch: Any) -> Acknowledgement:
    return Acknowledgement(batch.first_offset, batch.last_offset, batch.acknowledge_types)


async def are_valid(batches: Iterable[Acknowledgement], *, has_renew: bool, is_renew: bool) -> bool:
    """
    Whether a partition's acknowledgements can be what a client means (Kafka
    ``KafkaApis.validateAcknowledgementBatches``).
    """
    highest = AcknowledgeType.RENEW if has_renew else AcknowledgeType.REJECT
    end = -1
    for first, last, types in batches:
        await checkpoint()
        count = len(types)
        if first > last or first < end or not count or (count > 1 and last - first != count - 1):
            return False
        if min(types) < 0 or max(types) > highest:
            return False
        if AcknowledgeType.RENEW in types and not is_renew:
            return False
        end = last
    return True
