"""
Errors of an internal topic, as clients of its coordinator know them.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from barnabas.protocol.errors import ErrorCode

_CODES: Final[Mapping[ErrorCode, ErrorCode]] = {
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
    Translate an error of an append to the internal topic for a client of the coordinator.

    The client does not know that topic, and must not look for the leader of its partition (Kafka's
    ``CoordinatorOperationExceptionHelper``).
    """
    return _CODES.get(error, error)
