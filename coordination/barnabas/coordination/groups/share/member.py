"""
A member of a share group (KIP-932).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final, TypeAlias
from uuid import UUID

from barnabas.coordination.groups.modern.member import NOT_SENT
from barnabas.protocol.structs import struct

AssignedPartitions: TypeAlias = Mapping[UUID, Sequence[int]]
"""
Partitions of topics. No topic is empty.
"""

NOTHING_ASSIGNED: Final[AssignedPartitions] = {}

LONGEST_MEMBER_ID: Final = 36


def is_member_id(text: str | None) -> bool:
    """
    Whether a member may have that id.
    """
    return text is not None and 0 < len(text) <= LONGEST_MEMBER_ID


@struct(kw_only=True)
class ShareGroupMember:
    """
    A member at one moment (Kafka's class of this name). Its records make it, see ``ShareGroup``.

    A partition may belong to several members, so that none has to give it up for another: what a
    member is assigned it has at once.
    """

    instance_id: ClassVar[None] = None  # there are no static members
    topic_regex: ClassVar[str] = ""  # there are no patterns
    is_revoking: ClassVar[bool] = False
    rebalance_timeout_ms: ClassVar[int] = NOT_SENT

    member_id: str
    member_epoch: int = 0
    previous_member_epoch: int = -1
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topic_names: frozenset[str] = frozenset()
    assigned: AssignedPartitions = NOTHING_ASSIGNED
