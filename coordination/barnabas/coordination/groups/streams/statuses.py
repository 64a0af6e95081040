"""
The statuses that a member of a streams group is told of, beside its assignment.
"""

from __future__ import annotations

from enum import IntEnum

from barnabas.protocol.codec.schema import replace
from barnabas.protocol.messages.streams_group_heartbeat import (
    Status,
    StreamsGroupHeartbeatResponse,
)


class StatusCode(IntEnum):
    """
    The statuses, as numbered on the wire (Kafka's ``StreamsGroupHeartbeatResponse.Status``).
    """

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5


def status(code: StatusCode, detail: str) -> Status:
    """
    A status for the answer.
    """
    return Status(status_code=code, status_detail=detail)


def with_detail(
    response: StreamsGroupHeartbeatResponse, detail: str
) -> StreamsGroupHeartbeatResponse:
    """
    The answer that says more about missing internal topics.
    """

    def told(each: Status) -> Status:
        if each.status_code != StatusCode.MISSING_INTERNAL_TOPICS:
            return each
        return status(StatusCode.MISSING_INTERNAL_TOPICS, f"{each.status_detail}; {detail}")

    return replace(response, status=[told(each) for each in response.status or ()])


class TopicConfigurationError(Exception):
    """
    The topics of a topology do not exist, or not with the right numbers of partitions (Kafka's
    ``TopicConfigurationException``). Members are told by a status.
    """

    def __init__(self, code: StatusCode, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail

    @property
    def status(self) -> Status:
        return status(self.code, self.detail)
