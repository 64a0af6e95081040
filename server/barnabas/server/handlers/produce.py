"""
Produce: append batches.

Every partition of a request stands for itself: what is wrong with one says nothing of the others.
The order of the checks, and whether an error carries the log's start offset, are those of Kafka's
``KafkaApis.handleProduceRequest`` and ``ReplicaManager.appendToLocalLog``.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final

from barnabas.protocol.errors import (
    CorruptMessage,
    ErrorCode,
    InvalidRequiredAcks,
    InvalidTopicException,
    InvalidTxnState,
    KafkaError,
    MessageTooLarge,
    NotLeaderOrFollower,
    RecordListTooLarge,
    TransactionAbortable,
    TransactionalIdAuthorizationFailed,
    UnknownServerError,
)
from barnabas.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from barnabas.server.cluster.topic_names import INTERNAL_TOPICS
from barnabas.server.context import CloseConnection, Context
from barnabas.server.delayed_produce import DelayedProduce, Uncommitted
from barnabas.server.handlers import handles
from barnabas.server.partition import Partition
from barnabas.server.produced_records import check_records, is_transactional
from barnabas.storage.errors import KafkaStorageError, RecordValidationError

logger = logging.getLogger(__name__)

ADMIN_CLIENT: Final = "__admin_client"
ALL_REPLICAS: Final = -1
FIRST_ABORTABLE_VERSION: Final = 11
FIRST_ADDING_VERSION: Final = 12
"""The first version that adds partitions to a transaction by itself, verified or not (KIP-890)."""
FIRST_TOPIC_ID_VERSION: Final = 13
NO_OFFSET: Final = -1
NOT_ADDED: Final = "Partition was not added to the transaction"

# Errors of the partition or of the batch as a whole; all others that an append raises come with
# the offset at which the log starts.
_WITHOUT_START_OFFSET = (
    CorruptMessage,
    KafkaStorageError,
    MessageTooLarge,
    NotLeaderOrFollower,
    RecordListTooLarge,
)


def error_response(
    request: ProduceRequest, _version: int, code: ErrorCode, message: str | None
) -> ProduceResponse:
    """
    The same error for every partition.

    Raises:
        CloseConnection: the producer wants no answers, and has to learn of it all the same.
    """
    if request.acks == 0:
        raise CloseConnection(f"Produce with acks=0 failed: {code.name}")
    if code == ErrorCode.UNKNOWN_SERVER_ERROR or message == code.sentence:
        # What says no more than the code is not told, nor what was not foreseen (Kafka's ApiError).
        message = None
    return ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[
                    _error(data.index, code, message) for data in topic.partition_data
                ],
            )
            for topic in request.topic_data
        ]
    )


@handles(ProduceRequest, error_response=error_response)
def produce(request: ProduceRequest, context: Context) -> ProduceResponse | DelayedProduce | None:
    if request.transactional_id is None and _is_transactional(request):
        raise TransactionalIdAuthorizationFailed
    uncommitted: list[Uncommitted] = []
    responses = [
        TopicProduceResponse(
            name=topic.name,
            topic_id=topic.topic_id,
            partition_responses=[
                _append(request, context, topic, data, uncommitted) for data in topic.partition_data
            ],
        )
        for topic in request.topic_data
    ]
    if request.acks == 0:
        _close_on_error(responses)
        return None
    response = ProduceResponse(responses=responses)
    if not uncommitted:
        return response
    delayed = DelayedProduce(response, uncommitted)
    if request.acks == ALL_REPLICAS:
        delayed.limit(context.clock, request.timeout_ms)
    return delayed


def _append(
    request: ProduceRequest,
    context: Context,
    topic: TopicProduceData,
    data: PartitionProduceData,
    uncommitted: list[Uncommitted],
) -> PartitionProduceResponse:
    """
    Append to one partition and say how it went.
    """
    index = data.index
    version = context.version
    try:
        if version >= FIRST_TOPIC_ID_VERSION:
            partition = context.partitions.expect_by_id(topic.topic_id, index)
        else:
            partition = context.partitions.expect(topic.name, index)
        records = check_records(data.records, version)
        if _needs_verification(request, context) and is_transactional(records):
            # There is no coordinator that could have put the partition into a transaction.
            if version >= FIRST_ABORTABLE_VERSION:
                raise TransactionAbortable
            raise InvalidTxnState(NOT_ADDED)
        if not -1 <= request.acks <= 1:
            raise InvalidRequiredAcks
        if partition.topic in INTERNAL_TOPICS and context.client_id != ADMIN_CLIENT:
            raise InvalidTopicException
    except KafkaError as error:
        context.metrics.count_error("Produce", error.code)
        message = str(error) if isinstance(error, InvalidTxnState) else None
        return _error(index, error.code, message)
    try:
        info = partition.append(records)
    except Exception as error:  # whatever it is, the other partitions are served
        response = _append_error(partition, error)
        context.metrics.count_error("Produce", ErrorCode(response.error_code))
        return response
    response = PartitionProduceResponse(
        index=index,
        error_code=0,
        base_offset=info.first_offset,
        log_append_time_ms=info.log_append_time,
        log_start_offset=info.log_start_offset,
    )
    next_offset = info.last_offset + 1
    if next_offset > partition.log.high_watermark:
        uncommitted.append(Uncommitted(partition, next_offset, response))
    return response


def _append_error(partition: Partition, error: Exception) -> PartitionProduceResponse:
    """
    What the log has against a batch, told as Kafka tells it.
    """
    if not isinstance(error, KafkaError):
        logger.error("appending to %r failed", partition, exc_info=error)
        error = UnknownServerError()
    response = _error(partition.index, error.code)
    if not isinstance(error, _WITHOUT_START_OFFSET):
        response.log_start_offset = partition.log.log_start_offset
    if isinstance(error, RecordValidationError):
        response.error_message = str(error)
        response.record_errors = [
            BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=message)
            for index, message in error.record_errors
        ]
    return response


def _error(index: int, code: ErrorCode, message: str | None = None) -> PartitionProduceResponse:
    return PartitionProduceResponse(
        index=index, error_code=code, base_offset=NO_OFFSET, error_message=message
    )


def _needs_verification(request: ProduceRequest, context: Context) -> bool:
    """
    Whether the coordinator has to know of what is transactional in the request.
    """
    return request.transactional_id is not None and (
        context.version >= FIRST_ADDING_VERSION
        or context.config.transaction_partition_verification_enable
    )


def _is_transactional(request: ProduceRequest) -> bool:
    """
    Whether any batch is, as Kafka's RequestUtils finds out.

    A batch whose framing is broken fails the whole request, if it comes before the first
    transactional one: this is found before any partition is looked at.
    """
    for topic in request.topic_data:
        for data in topic.partition_data:
            if is_transactional(data.records):
                return True
    return False


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
