"""
One member of a classic group.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final, TypeAlias

from barnabas.protocol.messages.join_group import JoinGroupResponse
from barnabas.protocol.messages.sync_group import SyncGroupResponse
from barnabas.protocol.named_tuple import NamedTuple
from barnabas.server.groups.member_memory import Held

NO_ASSIGNMENT: Final = b""


class MemberProtocol(NamedTuple):
    """
    An assignor (or the like) that a member offers, with what it has to say to the leader about it.
    """

    name: str
    metadata: bytes


Protocols: TypeAlias = tuple[MemberProtocol, ...]
JoinReply: TypeAlias = Callable[[JoinGroupResponse], None]
SyncReply: TypeAlias = Callable[[SyncGroupResponse], None]


class Member:
    """
    A member of a classic group: who it is, what it offers, what it was assigned.

    Invariants:

    1. ``protocols`` is in the order of the member's preference.
    2. ``join_reply`` is set while a JoinGroup of the member is parked, ``sync_reply`` while a
       SyncGroup is. Whoever clears one has called it, or knows that nobody listens.

    Only the group that owns the member changes it: the group counts what it finds in here.
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
        self.held = held  # the memory of the protocols and the ids, unless it was read from the log
        self.is_new = is_new  # has not yet been told of a generation that it is part of
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
        Whether the session of the member may run out without consequence.

        A parked request holds up the heartbeats behind it. A new member is not excused: if its
        client gave up and joined anew under another id, nothing else would ever remove this one.
        """
        return not self.is_new and (self.awaits_join or self.awaits_sync)

    def metadata(self, protocol_name: str | None) -> bytes:
        """
        What the member says about a protocol that it offers.
        """
        for protocol in self.protocols:
            if protocol.name == protocol_name:
                return protocol.metadata
        raise AssertionError(f"{self.member_id} does not offer {protocol_name}")

    def vote(self, candidates: Collection[str]) -> str:
        """
        The candidate that the member likes best.
        """
        for protocol in self.protocols:
            if protocol.name in candidates:
                return protocol.name
        raise AssertionError(f"{self.member_id} offers none of {candidates}")

    def renamed(self, member_id: str) -> Member:
        """
        The same member under another id, with nothing parked.
        """
        return Member(
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
        return f"<Member {self.member_id} offers {offers}>"
