"""
One member of a classic group.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final, TypeAlias

from barnabas.coordination.coordinator_runtime.memory import Held
from barnabas.protocol.messages.join_group import JoinGroupResponse
from barnabas.protocol.messages.sync_group import SyncGroupResponse
from barnabas.protocol.structs import NamedTuple

NO_ASSIGNMENT: Final = b""


class MemberProtocol(NamedTuple):
    """
    An assignor that a member offers, with the member's metadata for the leader.
    """

    name: str
    metadata: bytes


Protocols: TypeAlias = tuple[MemberProtocol, ...]
JoinReply: TypeAlias = Callable[[JoinGroupResponse], None]
SyncReply: TypeAlias = Callable[[SyncGroupResponse], None]


class ClassicGroupMember:
    """
    A member of a classic group: its ids, its protocols, its assignment.

    Invariants:

    1. ``protocols`` is in the order of the member's preference.
    2. ``join_reply`` is set while a JoinGroup of the member is parked, ``sync_reply`` while a
       SyncGroup is.

    Only its group changes a member, since it keeps counts of its members.
    """

    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "held",
        "instance_id",
        "is_new",
        "join_reply",
        "member_id",
        "protocol_type",
        "protocols",
        "rebalance_timeout_ms",
        "session_timeout_ms",
        "sync_reply",
    )

    def __init__(
        self,
        member_id: str,
        *,
        instance_id: str | None,
        client_id: str,
        client_host: str,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        protocol_type: str,
        protocols: Protocols,
        assignment: bytes = NO_ASSIGNMENT,
        is_new: bool = False,
        held: Held | None = None,
    ) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocol_type = protocol_type
        self.protocols = protocols
        self.assignment = assignment
        self.is_new = is_new  # has not had the answer to its first JoinGroup
        self.held = held  # the memory of the protocols and the ids, unless it was read from the log
        self.join_reply: JoinReply | None = None
        self.sync_reply: SyncReply | None = None

    @property
    def is_static(self) -> bool:
        """
        Whether the member keeps its place across restarts (KIP-345).
        """
        return self.instance_id is not None

    @property
    def awaits_join(self) -> bool:
        return self.join_reply is not None

    @property
    def awaits_sync(self) -> bool:
        return self.sync_reply is not None

    @property
    def is_excused_from_heartbeats(self) -> bool:
        """
        Whether the member stays when its session has expired.

        A parked request holds up the heartbeats behind it. A new member is not excused: if its
        client has given up and joined under another id, only the session removes this member.
        """
        return not self.is_new and (self.awaits_join or self.awaits_sync)

    def metadata(self, protocol_name: str | None) -> bytes:
        """
        The metadata of a protocol that the member offers.
        """
        for protocol in self.protocols:
            if protocol.name == protocol_name:
                return protocol.metadata
        raise AssertionError(f"{self.member_id} does not offer {protocol_name}")

    def vote(self, candidates: Collection[str]) -> str:
        """
        The first candidate in the member's order of preference.
        """
        for protocol in self.protocols:
            if protocol.name in candidates:
                return protocol.name
        raise AssertionError(f"{self.member_id} offers none of {candidates}")

    def renamed(self, member_id: str) -> ClassicGroupMember:
        """
        The same member under another id, with nothing parked.
        """
        return ClassicGroupMember(
            member_id,
            instance_id=self.instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            session_timeout_ms=self.session_timeout_ms,
            protocol_type=self.protocol_type,
            protocols=self.protocols,
            assignment=self.assignment,
            held=self.held,
        )

    def __repr__(self) -> str:
        offers = ", ".join(protocol.name for protocol in self.protocols)
        return f"<ClassicGroupMember {self.member_id} offers {offers}>"
