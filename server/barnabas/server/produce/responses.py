"""
The response of Produce: for each partition where its batch is, or what is wrong with it.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from barnabas.protocol.errors import (
    CorruptMessage,
    ErrorCode,
    KafkaError,
    MessageTooLarge,
    NotLeaderOrFollower,
    RecordListTooLarge,
    UnknownServerError,
)
from barnabas.protocol.hot_messages.produce import AppendedResponse, produce_response
from barnabas.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from barnabas.server.requests.errors import CloseConnection
from barnabas.storage.errors import KafkaStorageError, RecordValidationError

if TYPE_CHECKING:
    from barnabas.server.metrics import Metrics
    from barnabas.server.partitions.partition import Partition
    from barnabas.storage.log.append_info import LogAppendInfo

logger = logging.getLogger(__name__)

ALL_REPLICAS: Final = -1
NO_OFFSET: Final = -1

# Errors of the partition or of the batch as a whole; all others that an append raises come with
# the offset at which the log starts.
_WITHOUT_START_OFFSET = (
    CorruptMessage,
    KafkaStorageError,
    MessageTooLarge,
    NotLeaderOrFollower,
    RecordListTooLarge,
)


def appended(index: int, info: LogAppendInfo) -> AppendedResponse:
    """
    Where the batch is.
    """
    return AppendedResponse(index, info.first_offset, info.log_append_time, info.log_start_offset)


def append_failed(
    partition: Partition, error: Exception, metrics: Metrics
) -> PartitionProduceResponse:
    """
    What the log has against a batch, told as Kafka tells it.
    """
    if not isinstance(error, KafkaError):
        logger.error("appending to %s failed", partition, exc_info=error)
        error = UnknownServerError()
    metrics.count_error("Produce", error.code)
    partition.produces += 1
    response = refused(partition.index, error.code)
    if not isinstance(error, _WITHOUT_START_OFFSET):
        # Kafka counts the same ones as failed.
        partition.failed_produces += 1
        response.log_start_offset = partition.log.log_start_offset
    if isinstance(error, RecordValidationError):
        response.error_message = str(error)
        response.record_errors = [
            BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=message)
            for index, message in error.record_errors
        ]
    return response


def refused(index: int, code: ErrorCode, message: str | None = None) -> PartitionProduceResponse:
    """
    An error that has nothing to do with what is in the log.
    """
    return PartitionProduceResponse(
        index=index, error_code=code, base_offset=NO_OFFSET, error_message=message
    )


def response_of(topics: list[TopicProduceResponse], acks: int) -> ProduceResponse | None:
    """
    The response of all partitions. A producer with ``acks=0`` gets none.

    Raises:
        CloseConnection: the producer gets none, but something has failed. A closed connection makes
            it look at the metadata again.
    """
    if acks:
        return produce_response(topics)
    errors = {
        f"{topic.name or topic.topic_id}-{partition.index}": ErrorCode(partition.error_code).name
        for topic in topics
        for partition in topic.partition_responses
        if partition.error_code
    }
    if errors:
        raise CloseConnection(f"Produce with acks=0 failed: {errors}")
    return None
