"""
The appends of one Produce request, and the answer that they add up to.

Every partition of a request stands for itself: what is wrong with one says nothing of the others.
The order of the checks, and whether an error carries the log's start offset, are those of Kafka's
``KafkaApis.handleProduceRequest`` and ``ReplicaManager.appendToLocalLog``.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, cast

from barnabas.coordination.cluster.topic_names import INTERNAL_TOPICS
from barnabas.coordination.security.acl.permissions import WRITE_TOPIC
from barnabas.protocol.errors import (
    ErrorCode,
    InvalidRequiredAcks,
    InvalidTopicException,
    InvalidTxnState,
    KafkaError,
    NotEnoughReplicas,
)
from barnabas.protocol.hot_messages.produce import PartitionResponse
from barnabas.protocol.messages.produce import (
    FIRST_TOPIC_ID_VERSION,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from barnabas.server.partitions.partition import Partition
from barnabas.server.produce.delayed import Uncommitted, wait_for_commit
from barnabas.server.produce.responses import (
    ALL_REPLICAS,
    append_failed,
    appended,
    refused,
    response_of,
)
from barnabas.server.produce.validation import check_records
from barnabas.storage.errors import BatchTakesLong
from barnabas.storage.producers.entry import SENTINEL, VerificationGuard

if TYPE_CHECKING:
    from barnabas.server.partitions.partitions import Partitions
    from barnabas.server.produce.transactions import Participation
    from barnabas.server.requests.context import RequestContext
    from barnabas.storage.log.append_info import LogAppendInfo
    from barnabas.storage.log.validator import Examined

ADMIN_CLIENT: Final = "__admin_client"
"""
The client id that may write to internal topics (Kafka ``AdminUtils``).
"""
# Errors of transactions that say more than their code.
_WITH_MESSAGE: Final = (InvalidTxnState, NotEnoughReplicas)


class _Long:
    """
    A batch that takes long to examine, or is the first one of a log whose topic id is not on the
    disk yet. ``place`` is answered for it until it is appended.
    """

    __slots__ = ("guard", "partition", "place", "records")

    def __init__(
        self,
        partition: Partition,
        records: memoryview,
        guard: VerificationGuard,
        place: PartitionProduceResponse,
    ) -> None:
        self.partition = partition
        self.records = records
        self.guard = guard
        self.place = place


class ProduceAppends:
    """
    The appends of one request.

    Call ``append`` or ``refuse`` for each partition and put what they return into ``responses``,
    then ``response`` if ``is_settled``, or await ``settled``.
    """

    __slots__ = (
        "_acks",
        "_context",
        "_long",
        "_participation",
        "_partitions",
        "_request",
        "_uncommitted",
        "_version",
        "responses",
    )

    def __init__(
        self, request: ProduceRequest, context: RequestContext, participation: Participation | None
    ) -> None:
        self._request = request
        self._context = context
        # What every partition of the request asks for, where compiled code finds it at once.
        self._acks: int = request.acks
        self._partitions: Partitions = context.broker.partitions
        self._version: int = context.version
        self._participation = participation
        self._uncommitted: list[Uncommitted] = []
        self._long: list[_Long] = []
        self.responses: list[TopicProduceResponse] = []
        """The responses, one for each topic."""

    def append(self, topic: TopicProduceData, data: PartitionProduceData) -> PartitionResponse:
        """
        Append the records of one partition, and return the response for it.
        """
        index: int = data.index
        context = self._context
        partitions = self._partitions
        version = self._version
        try:
            if version >= FIRST_TOPIC_ID_VERSION:
                partition = partitions.expect_by_id(topic.topic_id, index)
            else:
                partition = partitions.expect(topic.name, index)
            records = check_records(data.records, version)
            guard = SENTINEL
            if self._participation is not None:
                guard = self._participation.guard(partition)
            if not -1 <= self._acks <= 1:
                raise InvalidRequiredAcks
            if partition.topic in INTERNAL_TOPICS and context.client_id != ADMIN_CLIENT:
                raise InvalidTopicException
        except KafkaError as error:
            context.broker.metrics.count_error("Produce", error.code)
            message = str(error) if isinstance(error, _WITH_MESSAGE) else None
            return refused(index, error.code, message)
        try:
            if partition.log.is_topic_id_unwritten:
                raise BatchTakesLong
            if guard is SENTINEL:
                info = partition.append(records)
            else:
                info = partition.append(records, verification_guard=guard, at_once=True)
        except BatchTakesLong:
            place = refused(index, ErrorCode.UNKNOWN_SERVER_ERROR)
            self._long.append(_Long(partition, records, guard, place))
            return place
        except Exception as error:  # whatever it is, the other partitions are served
            return append_failed(partition, error, context.broker.metrics)
        return self._appended(partition, info)

    def refuse(self, data: PartitionProduceData) -> PartitionResponse:
        """
        The response for a partition of a topic that the client may not write to.
        """
        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        self._context.broker.metrics.count_error("Produce", code)
        return refused(data.index, code)

    def _appended(self, partition: Partition, info: LogAppendInfo) -> PartitionResponse:
        response = appended(partition.index, info)
        next_offset = info.last_offset + 1
        if next_offset > partition.log.high_watermark:
            self._uncommitted.append(Uncommitted(partition, next_offset, response))
        return response

    @property
    def is_settled(self) -> bool:
        """
        Return True if the answer waits for nothing.
        """
        return not (self._long or self._uncommitted)

    async def _examine_and_append(self, long: _Long) -> PartitionResponse:
        partition, records = long.partition, long.records
        context, log = self._context, partition.log
        workers = context.broker.workers
        examined: Examined | None = None
        try:
            if log.is_topic_id_unwritten:
                await workers.in_changes(log.write_topic_id)
            while True:
                try:
                    info = partition.append(
                        records, verification_guard=long.guard, at_once=True, examined=examined
                    )
                    break
                except BatchTakesLong:
                    # It was not examined yet, or the topic has another configuration by now.
                    pass
                examined = await workers.batches.do(
                    context.client, partial(log.examine, records), len(records)
                )
        except Exception as error:  # whatever it is, the other partitions are served
            return append_failed(partition, error, context.broker.metrics)
        return self._appended(partition, info)

    def response(self) -> ProduceResponse | None:
        """
        The response; None if the client wants none.

        Raises:
            CloseConnection: it wants none, but something has failed.
        """
        return response_of(self.responses, self._acks)

    async def settled(self) -> ProduceResponse | None:
        """
        Append the batches that take long, one after the other, and return the response once what
        was appended is committed.

        Raises:
            CloseConnection: as ``response``.
        """
        if self._long:
            done = {id(long.place): await self._examine_and_append(long) for long in self._long}
            for topic in self.responses:
                places = cast("list[PartitionResponse]", topic.partition_responses)
                places[:] = [done.get(id(response), response) for response in places]
        response = self.response()
        uncommitted = self._uncommitted
        if response is None:
            # The producer gets no answer, but its next request is served after this one, and sees
            # the records.
            for each in uncommitted:
                await each.partition.committed(each.next_offset)
        elif uncommitted:
            context = self._context
            context.effects_done(is_seen=False)
            timeout_ms = self._request.timeout_ms if self._acks == ALL_REPLICAS else None
            await wait_for_commit(uncommitted, context.broker.clock, timeout_ms)
        return response


def may_write(topic: TopicProduceData, context: RequestContext) -> bool:
    """
    Whether the client may append to the topic. An id that no topic has is not asked about.
    """
    name: str | None = topic.name
    if context.version >= FIRST_TOPIC_ID_VERSION:
        name = context.broker.partitions.name_of(topic.topic_id)
    return name is None or context.allows(WRITE_TOPIC, name)
