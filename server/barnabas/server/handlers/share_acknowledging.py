"""
Acknowledgements in ShareFetch and ShareAcknowledge requests: checked, done, and answered by
partition.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeVar
from uuid import UUID

from barnabas.protocol.errors import ErrorCode, InvalidRequest, KafkaError
from barnabas.protocol.messages.share_acknowledge import ShareAcknowledgeRequest
from barnabas.protocol.messages.share_fetch import ShareFetchRequest
from barnabas.protocol.structs import NamedTuple
from barnabas.server.groups.group_type import GroupType
from barnabas.server.groups.share.member import is_member_id
from barnabas.server.handlers.group_protocols import check_protocol
from barnabas.server.requests.context import RequestContext
from barnabas.server.scheduling.turns import ENTRIES_PER_STEP, checkpoint, map_in_turns, settle
from barnabas.server.security.acl.permissions import READ_GROUP
from barnabas.server.share.acknowledging import Acknowledgement
from barnabas.server.share.record_state import AcknowledgeType
from barnabas.server.share.sessions import ShareSessionKey, TopicIdPartition

T = TypeVar("T")

FIRST_RENEW_VERSION: Final = 2


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


def session_key(
    request: ShareFetchRequest | ShareAcknowledgeRequest, context: RequestContext
) -> ShareSessionKey:
    """
    The key of the session of a request, whose sender may be a member of its group.

    Raises:
        UnsupportedVersion: see ``check_protocol``.
        GroupAuthorizationFailed: the client may not read the group.
        InvalidRequest: there is no group id, or no member can have that id.
    """
    check_protocol(context, GroupType.SHARE)
    if request.group_id is None:
        raise InvalidRequest("Invalid group id in the request.")
    context.require(READ_GROUP, request.group_id)
    if request.member_id is None or not is_member_id(request.member_id):
        raise InvalidRequest("Invalid member id in the request.")
    return ShareSessionKey(request.group_id, request.member_id)


async def acknowledge(
    request: Any,
    context: RequestContext,
    may_read: Callable[[str], bool],
    pending: PendingAcknowledgements,
) -> None:
    """
    Do what a request acknowledges, and gather the results in *pending* (Kafka
    ``KafkaApis.handleAcknowledgements``).
    """
    has_renew = context.version >= FIRST_RENEW_VERSION
    empty = []
    is_any_done = False
    for topic in request.topics:
        await checkpoint()
        name = context.broker.partitions.name_of(topic.topic_id)
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
            elif not context.broker.partitions.knows(name, where[1]):
                pending.refuse(where, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            elif batches:
                is_any_done = True
                _acknowledge(request, context, where, batches, pending)
            else:
                empty.append(where)
    # Kafka answers for a partition without acknowledgements only beside others.
    for where in empty if is_any_done else ():
        await checkpoint()
        pending.refuse(where, ErrorCode.NONE)


def _acknowledge(
    request: Any,
    context: RequestContext,
    where: TopicIdPartition,
    batches: Sequence[Acknowledgement],
    pending: PendingAcknowledgements,
) -> None:
    share_partition = context.broker.share_partitions.get(request.group_id, *where)
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


async def by_topic(
    results: Mapping[TopicIdPartition, Any], topic_result: Callable[..., T]
) -> list[T]:
    """
    The results of partitions, by topics.

    Args:
        topic_result: makes the result of a topic.
    """
    topics: dict[UUID, list[Any]] = {}
    for number, ((topic_id, _), result) in enumerate(results.items(), 1):
        if number % ENTRIES_PER_STEP == 0:
            await checkpoint()
        topics.setdefault(topic_id, []).append(result)

    def of_topic(item: tuple[UUID, list[Any]]) -> T:
        topic_id, partitions = item
        return topic_result(topic_id=topic_id, partitions=partitions)

    return await map_in_turns(of_topic, topics.items())
