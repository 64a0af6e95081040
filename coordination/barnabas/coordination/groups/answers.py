"""
Errors of JoinGroup and SyncGroup, which several modules answer with.
"""

from __future__ import annotations

from typing import Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.join_group import JoinGroupResponse
from barnabas.protocol.messages.sync_group import SyncGroupResponse

NO_MEMBER_ID: Final = ""
NO_LEADER: Final = ""
NO_GENERATION: Final = -1


def join_error(member_id: str, error: ErrorCode) -> JoinGroupResponse:
    """
    The answer to a JoinGroup that is refused.
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
    The answer to a SyncGroup that is refused.
    """
    return SyncGroupResponse(
        error_code=error, protocol_type=None, protocol_name=None, assignment=b""
    )
