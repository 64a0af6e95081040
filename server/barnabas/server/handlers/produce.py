"""
Produce: append batches.

Every partition of a request stands for itself: what is wrong with one says nothing of the others.
The order of the checks, and whether an error carries the log's start offset, are those of Kafka's
``KafkaApis.handleProduceRequest`` and ``ReplicaManager.appendToLocalLog``.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, cast
from uuid import UUID

from barnabas.protocol.errors import (
    ErrorCode,
    InvalidRequiredAcks,
    InvalidTopicException,
    InvalidTxnState,
    KafkaError,
    NotEnoughReplicas,
    TransactionalIdAuthorizationFailed,
)
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from barnabas.server.cluster.topic_names import INTERNAL_TOPICS
from barnabas.server.produce.delayed import DelayedProduce, Uncommitted
from barnabas.server.produce.long_appends import append_long
from barnabas.server.produce.plain_appends import append_plain
from barnabas.server.produce.responses import answer, append_failed, appended, refused
from barnabas.server.produce.transactions import FIRST_TOPIC_ID_VERSION, Participation
from barnabas.server.produce.validation import (
    FIRST_ZSTD_VERSION,
    check_codec,
    check_records,
    is_transactional,
)
from barnabas.server.requests.context import CloseConnection, Context
from barnabas.server.requests.registry import handles
from barnabas.server.scheduling.turns import Steps, map_in_steps
from barnabas.storage.errors import BatchTakesLong
from barnabas.storage.producers.entry import SENTINEL, VerificationGuard

if TYPE_CHECKING:
    from barnabas.server.partitions.partition import Partition
    from barnabas.storage.log.append_info import LogAppendInfo

Produced: TypeAlias = "ProduceResponse | DelayedProduce | None"

ADMIN_CLIENT: Final = "__admin_client"

# Errors of transactions that say more than their code.
_WITH_MESSAGE = (InvalidTxnState, NotEnoughReplicas)


def forget_records(request: ProduceRequest) -> None:
    """
    Let go of the records, which are in the logs now.
    """
    for topic in request.topic_data:
        for data in topic.partition_data:
            data.records = None


@handles(ProduceRequest, shortcut=append_plain, forget=forget_records)
def produce(
    request: ProduceRequest, context: Context
) -> Steps[Produced | Coroutine[Any, Any, Produced]]:
    is_transactional = yield from _is_transactional(request)
    if request.transactional_id is None and is_transactional:
        raise TransactionalIdAuthorizationFailed
    if context.version < FIRST_ZSTD_VERSION:
        yield from _check_codecs(request, context)
    if request.transactional_id is None:
        return (yield from _produce(request, context, None))
    participation = Participation(request.transactional_id, context.version)
    yield from participation.begin(request, context)
    if participation.is_pending:
        return _join_and_produce(request, context, participation)
    return (yield from _produce(request, context, participation))


async def _join_and_produce(
    request: ProduceRequest, context: Context, participation: Participation
) -> ProduceResponse | None:
    await participation.finish(context)
    produced = await context.turns.finish(_produce(request, context, participation))
    if isinstance(produced, Coroutine):
        produced = await produced
    if isinstance(produced, DelayedProduce):
        return cast(ProduceResponse, await produced.outcome())
    return produced


def _produce(
    request: ProduceRequest, context: Context, participation: Participation | None
) -> Steps[Produced | Coroutine[Any, Any, Produced]]:
    """
    Append what there is for each partition.
    """
    appends = _Appends(request, context, participation)
    responses = []
    for topic in (yield from _once_each(request.topic_data)):
        appended = yield from map_in_steps(partial(appends.append, topic), topic.partition_data)
        responses.append(
            TopicProduceResponse(
                name=topic.name, topic_id=topic.topic_id, partition_responses=appended
            )
        )
    if appends.has_long:
        return appends.finish(responses)
    return appends.answer(responses)


def _once_each(topics: Sequence[TopicProduceData]) -> Steps[Sequence[TopicProduceData]]:
    """
    Each partition once, with the last that the request has for it.

    Kafka goes by a map of partitions: a topic without any is not answered.
    """
    if len(topics) == 1 and len(topics[0].partition_data) == 1:
        return topics
    found: dict[tuple[str, UUID], dict[int, PartitionProduceData]] = {}
    for topic in topics:
        for data in topic.partition_data:
            yield
            found.setdefault((topic.name, topic.topic_id), {})[data.index] = data

    def once(item: tuple[tuple[str, UUID], dict[int, PartitionProduceData]]) -> TopicProduceData:
        (name, topic_id), data = item
        return TopicProduceData(name=name, topic_id=topic_id, partition_data=list(data.values()))

    return (yield from map_in_steps(once, found.items()))


class _Long(NamedTuple):
    """
    An append that takes long, and what is answered in its place until it is done.
    """

    partition: Partition
    records: memoryview
    guard: VerificationGuard
    place: PartitionProduceResponse


class _Appends:
    """
    The appends of one request, and what of them is not done or not committed yet.
    """

    __slots__ = ("_context", "_long", "_participation", "_request", "_uncommitted")

    def __init__(
        self, request: ProduceRequest, context: Context, participation: Participation | None
    ) -> None:
        self._request = request
        self._context = context
        self._participation = participation
        self._uncommitted: list[Uncommitted] = []
        self._long: list[_Long] = []

    @property
    def has_long(self) -> bool:
        """
        Whether there are batches that have to be waited for before ``answer``, with ``finish``.
        """
        return bool(self._long)

    def append(
        self, topic: TopicProduceData, data: PartitionProduceData
    ) -> PartitionProduceResponse:
        """
        Append to one partition and say how it went.
        """
        index = data.index
        context = self._context
        participation = self._participation
        try:
            if context.version >= FIRST_TOPIC_ID_VERSION:
                partition = context.partitions.expect_by_id(topic.topic_id, index)
            else:
                partition = context.partitions.expect(topic.name, index)
            records = check_records(data.records, context.version)
            guard = SENTINEL if participation is None else participation.guard(partition)
            if not -1 <= self._request.acks <= 1:
                raise InvalidRequiredAcks
            if partition.topic in INTERNAL_TOPICS and context.client_id != ADMIN_CLIENT:
                raise InvalidTopicException
        except KafkaError as error:
            context.metrics.count_error("Produce", error.code)
            message = str(error) if isinstance(error, _WITH_MESSAGE) else None
            return refused(index, error.code, message)
        try:
            if guard is SENTINEL:
                info = partition.append(records)
            else:
                info = partition.append(records, verification_guard=guard, at_once=True)
        except BatchTakesLong:
            place = refused(index, ErrorCode.UNKNOWN_SERVER_ERROR)
            self._long.append(_Long(partition, records, guard, place))
            return place
        except Exception as error:  # whatever it is, the other partitions are served
            return append_failed(partition, error, context.metrics)
        return self._appended(partition, info)

    def _appended(self, partition: Partition, info: LogAppendInfo) -> PartitionProduceResponse:
        response = appended(partition.index, info)
        next_offset = info.last_offset + 1
        if next_offset > partition.log.high_watermark:
            self._uncommitted.append(Uncommitted(partition, next_offset, response))
        return response

    async def finish(self, responses: list[TopicProduceResponse]) -> Produced:
        """
        Append what takes long, and answer.

        Args:
            responses: what ``append`` has said.
        """
        told = {id(long.place): await self._append_long(long) for long in self._long}
        for topic in responses:
            topic.partition_responses = [
                told.get(id(response), response) for response in topic.partition_responses
            ]
        produced = self.answer(responses)
        if not isinstance(produced, Coroutine):
            return produced
        await produced
        return None

    async def _append_long(self, long: _Long) -> PartitionProduceResponse:
        partition = long.partition
        context = self._context
        try:
            info = await append_long(
                partition,
                long.records,
                context.examiner,
                context.connection,
                verification_guard=long.guard,
            )
        except Exception as error:  # whatever it is, the other partitions are served
            return append_failed(partition, error, context.metrics)
        return self._appended(partition, info)

    def answer(self, responses: list[TopicProduceResponse]) -> Produced | Coroutine[Any, Any, None]:
        """
        The response for all partitions, once all appends are done.

        Raises:
            CloseConnection: it wants no answers, but something failed.
        """
        request = self._request
        if request.acks != 0:
            clock = self._context.clock
            return answer(responses, self._uncommitted, request.acks, request.timeout_ms, clock)
        _close_on_error(responses)
        return _commit(self._uncommitted) if self._uncommitted else None


def _is_transactional(request: ProduceRequest) -> Steps[bool]:
    """
    Whether any batch is, as Kafka's RequestUtils finds out.

    A batch whose framing is broken fails the whole request, if it comes before the first
    transactional one: this is found before any partition is looked at.
    """
    for topic in request.topic_data:
        for data in topic.partition_data:
            yield
            if is_transactional(data.records):
                return True
    return False


def _check_codecs(request: ProduceRequest, context: Context) -> Steps[None]:
    """
    A codec that does not exist fails the whole request, before anything of it is appended.
    """
    for topic in request.topic_data:
        for data in topic.partition_data:
            yield
            if context.partitions.knows(topic.name, data.index):
                check_codec(data.records)


async def _commit(uncommitted: Iterable[Uncommitted]) -> None:
    """
    Wait for the fsyncs that the appends owe: the producer is told nothing, but the next request on
    its connection is served after this one, and sees the records.
    """
    for partition, next_offset, _ in uncommitted:
        await partition.committed(next_offset)


def _close_on_error(responses: Iterable[TopicProduceResponse]) -> None:
    """
    The producer asked for no answer; a closed connection makes it look at the metadata again.
    """
    errors = {
        f"{topic.name or topic.topic_id}-{partition.index}": ErrorCode(partition.error_code).name
        for topic in responses
        for partition in topic.partition_responses
        if partition.error_code
    }
    if errors:
        raise CloseConnection(f"Produce with acks=0 failed: {errors}")
