"""
Answers of the group coordinator that are made in more than one place.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.join_group import JoinGroupResponse
from barnabas.protocol.messages.sync_group import SyncGroupResponse

NO_MEMBER_ID: Final = ""
NO_LEADER: Final = ""
NO_GENERATION: Final = -1

_AS_SEEN_BY_CLIENTS: Final[Mapping[ErrorCode, ErrorCode]] = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


def coordinator_error(error: ErrorCode) -> ErrorCode:
    """
    What a client is told when the coordinator could not write to its own log.

    The errors of a produce would send it looking for the leader of a partition that it has never
    heard of (Kafka's ``CoordinatorOperationExceptionHelper``).
    """
    return _AS_SEEN_BY_CLIENTS.get(error, error)


def join_error(member_id: str, error: ErrorCode) -> JoinGroupResponse:
    """
    A JoinGroup that was refused.
    """
    return JoinGroupResponse(
        error_code=error,
        generation_id=NO_GENERATION,
        protocol_type=None,
        protocol_name=None,
        leader=NO_LEADER,
        skip_assignment=False,
        member_id=member_id,
        members=[],
    )


def sync_error(error: ErrorCode) -> SyncGroupResponse:
    """
    A SyncGroup that was refused.
    """
    return SyncGroupResponse(
        error_code=error, protocol_type=None, protocol_name=None, assignment=b""
    )
