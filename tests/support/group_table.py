"""
What a group answers in each of its states: every request and every state, for any broker.

A ``Peer`` is whatever takes requests: handlers in this process, or a broker at the other end of a
connection, which may be Apache Kafka.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias

from barnabas.protocol.codec.schema import Message
from barnabas.protocol.errors import ErrorCode
from tests.support.build import api_request
from tests.support.coordination import subscription
from tests.support.group_requests import (
    commit_request,
    heartbeat_request,
    join_request,
    offset_delete_request,
    sync_request,
)

PARKED: Final = "parked"
USED, UNUSED = "group-table-used", "group-table-unused"
"""
Two topics with a partition each, which must exist; members subscribe to the first.
"""

MISSING: Final = "no such group"
STATES: Final = (MISSING, "Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead")


class Peer(Protocol):
    """
    Takes requests.
    """

    async def send(self, request: Message, version: int) -> asyncio.Future[Any]:
        """
        Send a request over a connection of its own; the future has the answer when it comes.
        """

    async def answer(self, future: asyncio.Future[Any]) -> Any:
        """
        The answer, or None if it does not come at once.
        """

    async def pass_delay(self) -> None:
        """
        Return when the initial delay of a rebalance is over.
        """

    async def unload(self) -> None:
        """
        Make all groups dead.
        """


Request: TypeAlias = "tuple[Message, int]"


@dataclass
class Scene:
    """
    A group that had a dynamic leader and a static follower, in some state.
    """

    group_id: str
    leader: str = ""
    follower: str = ""
    generation_id: int = 1

    def join(self, member_id: str = "", *, version: int = 9, **changes: Any) -> Request:
        facts: dict[str, Any] = {"session_timeout_ms": 30_000, "protocols": OFFER}
        return join_request(self.group_id, member_id, **facts | changes), version

    def sync(self, member_id: str, generation: int = 0, **changes: Any) -> Request:
        facts: dict[str, Any] = {
            "protocol_type": "consumer",
            "protocol_name": "range",
            "assignments": [],
        }
        number = self.generation_id + generation
        return sync_request(self.group_id, member_id, number, **facts | changes), 5

    def heartbeat(self, member_id: str, generation: int = 0, **changes: Any) -> Request:
        number = self.generation_id + generation
        return heartbeat_request(self.group_id, member_id, number, **changes), 4

    def leave(self, member_id: str, instance_id: str | None = None) -> Request:
        member = {"member_id": member_id, "group_instance_id": instance_id}
        return api_request("leave_group", group_id=self.group_id, members=[member]), 5

    def commit(
        self, member_id: str = "", generation_id: int = -1, *, version: int = 9, **changes: Any
    ) -> Request:
        facts: dict[str, Any] = {
            "member_id": member_id,
            "generation_id_or_member_epoch": generation_id,
        }
        return commit_request(self.group_id, USED, {0: 5}, **facts | changes), version

    def delete(self) -> Request:
        return api_request("delete_groups", groups_names=[self.group_id]), 2

    def delete_offset(self, topic: str) -> Request:
        return offset_delete_request(self.group_id, {topic: [0]}), 0


def offer(**protocols: bytes) -> list[dict[str, Any]]:
    return [{"name": name, "metadata": metadata} for name, metadata in protocols.items()]


OFFER = offer(range=subscription(USED), sticky=b"\0\0\0\0\0\0")
CHANGED = offer(sticky=b"\0\0\0\0\0\0", range=subscription(USED, UNUSED))


async def set_up(peer: Peer, group_id: str, state: str) -> Scene:
    """
    A group in that state.
    """
    s = Scene(group_id)
    required = await _ask(peer, s.join())
    assert ErrorCode.MEMBER_ID_REQUIRED == required.error_code
    s.leader = required.member_id
    first = await peer.send(*s.join(s.leader))
    assert await peer.answer(first) is None, "the first round waits for more"
    second = await peer.send(*s.join(group_instance_id="i"))
    await peer.pass_delay()
    told, joined = await _finish(peer, first), await _finish(peer, second)
    s.follower, s.generation_id = joined.member_id, joined.generation_id
    assert s.leader == told.leader == joined.leader
    if state != "CompletingRebalance":
        await _become(peer, s, state)
    return s


async def _become(peer: Peer, s: Scene, state: str) -> None:
    assignment = [{"member_id": s.follower, "assignment": b"f"}]
    assert 0 == (await _ask(peer, s.sync(s.leader, assignments=assignment))).error_code
    assert 0 == (await _ask(peer, s.sync(s.follower))).error_code
    if state in {"Empty", MISSING}:
        await _ask(peer, s.leave(s.leader))
        await _ask(peer, s.leave(s.follower))
    if state == MISSING:
        assert 0 == (await _ask(peer, s.delete())).results[0].error_code
    elif state == "PreparingRebalance":
        # Somebody is on the way.
        await peer.answer(await peer.send(*s.join(version=3)))
    elif state == "Dead":
        await peer.unload()


async def _ask(peer: Peer, request: Request) -> Any:
    return await _finish(peer, await peer.send(*request))


async def _finish(peer: Peer, future: asyncio.Future[Any]) -> Any:
    answer = await peer.answer(future)
    assert answer is not None, "no answer"
    return answer


async def code_of(peer: Peer, request: Request) -> int | str:
    """
    The code in the answer, wherever it stands, or that there is none yet.
    """
    answer = await peer.answer(await peer.send(*request))
    if answer is None:
        return PARKED
    for slots in ("results", "members", "topics"):
        items = getattr(answer, slots, [])
        if getattr(answer, "error_code", 0) == ErrorCode.NONE and items:
            item = items[0].partitions[0] if slots == "topics" else items[0]
            return int(getattr(item, "error_code", 0))
    return int(answer.error_code)


Row: TypeAlias = "tuple[Callable[[Scene], Request], tuple[int | str, ...]]"

# Columns: no such group, Empty, PreparingRebalance, CompletingRebalance, Stable, Dead.
TABLE: Final[dict[str, Row]] = {
    "heartbeat": (lambda s: s.heartbeat(s.follower), (25, 25, 27, 0, 0, 15)),
    "heartbeat of a static member": (
        lambda s: s.heartbeat(s.follower, group_instance_id="i"),
        (25, 25, 27, 0, 0, 15),
    ),
    "heartbeat of nobody": (lambda s: s.heartbeat("nobody"), (25, 25, 25, 25, 25, 15)),
    "heartbeat of before": (lambda s: s.heartbeat(s.follower, -1), (25, 25, 22, 22, 22, 15)),
    "heartbeat of a fenced member": (
        lambda s: s.heartbeat("old", group_instance_id="i"),
        (25, 25, 82, 82, 82, 15),
    ),
    "sync of a follower": (lambda s: s.sync(s.follower), (25, 25, 27, PARKED, 0, 15)),
    "sync of the leader": (lambda s: s.sync(s.leader), (25, 25, 27, 0, 0, 15)),
    "sync with another protocol": (
        lambda s: s.sync(s.leader, protocol_name="sticky"),
        (25, 25, 23, 23, 23, 15),
    ),
    "sync with another protocol type": (
        lambda s: s.sync(s.leader, protocol_type="connect"),
        (25, 25, 23, 23, 23, 15),
    ),
    "sync of nobody": (lambda s: s.sync("nobody"), (25, 25, 25, 25, 25, 15)),
    "sync of before": (lambda s: s.sync(s.follower, -1), (25, 25, 22, 22, 22, 15)),
    "sync of a fenced member": (
        lambda s: s.sync("old", group_instance_id="i"),
        (25, 25, 82, 82, 82, 15),
    ),
    "join of somebody new": (lambda s: s.join(), (79, 79, 79, 79, 79, 15)),
    "join of somebody new, v3": (
        lambda s: s.join(version=3),
        (PARKED, PARKED, PARKED, PARKED, PARKED, 15),
    ),
    "join with an id from elsewhere": (lambda s: s.join("elsewhere"), (25, 25, 25, 25, 25, 15)),
    "join of the leader": (lambda s: s.join(s.leader), (25, 25, PARKED, 0, PARKED, 15)),
    "join of a follower": (
        lambda s: s.join(s.follower, group_instance_id="i"),
        (25, 25, PARKED, 0, 0, 15),
    ),
    "join of a follower that has changed": (
        lambda s: s.join(s.follower, protocols=CHANGED, group_instance_id="i"),
        (25, 25, PARKED, PARKED, PARKED, 15),
    ),
    "join of a fenced member": (
        lambda s: s.join("old", group_instance_id="i"),
        (25, 25, 82, 82, 82, 15),
    ),
    "join of a static member that starts again": (
        lambda s: s.join(group_instance_id="i"),
        (PARKED, PARKED, PARKED, PARKED, 0, 15),
    ),
    "join of another static member": (
        lambda s: s.join(group_instance_id="j"),
        (PARKED, PARKED, PARKED, PARKED, PARKED, 15),
    ),
    "join without protocols": (lambda s: s.join(protocols=[]), (23, 23, 23, 23, 23, 15)),
    "join without a protocol type": (lambda s: s.join(protocol_type=""), (23, 23, 23, 23, 23, 15)),
    "join of another kind of program": (
        lambda s: s.join(protocol_type="connect"),
        (79, 79, 23, 23, 23, 15),
    ),
    "join with protocols of its own": (
        lambda s: s.join(protocols=offer(own=b"")),
        (79, 79, 23, 23, 23, 15),
    ),
    "join with a short session": (
        lambda s: s.join(session_timeout_ms=5999),
        (26, 26, 26, 26, 26, 26),
    ),
    "leave": (lambda s: s.leave(s.leader), (25, 25, 0, 0, 0, 15)),
    "leave of a static member": (lambda s: s.leave(s.follower, "i"), (25, 25, 0, 0, 0, 15)),
    "leave by instance id": (lambda s: s.leave("", "i"), (25, 25, 0, 0, 0, 15)),
    "leave by another instance id": (lambda s: s.leave("", "j"), (25, 25, 25, 25, 25, 15)),
    "leave of nobody": (lambda s: s.leave("nobody"), (25, 25, 25, 25, 25, 15)),
    "leave of nobody at all": (lambda s: s.leave(""), (25, 25, 25, 25, 25, 15)),
    "leave of a fenced member": (lambda s: s.leave("old", "i"), (25, 25, 82, 82, 82, 15)),
    "commit": (lambda s: s.commit(s.leader, s.generation_id), (69, 25, 0, 27, 0, 15)),
    "commit, v8": (
        lambda s: s.commit(s.leader, s.generation_id, version=8),
        (22, 25, 0, 27, 0, 15),
    ),
    "commit of nobody in particular": (lambda s: s.commit(), (0, 0, 25, 25, 25, 15)),
    "commit of nobody with an id": (lambda s: s.commit("zz"), (0, 0, 25, 25, 25, 15)),
    "commit of a member without a generation": (
        lambda s: s.commit(s.leader),
        (0, 0, 22, 22, 22, 15),
    ),
    "commit of before": (
        lambda s: s.commit(s.leader, s.generation_id - 1),
        (69, 25, 22, 22, 22, 15),
    ),
    "commit of a fenced member": (
        lambda s: s.commit("old", s.generation_id, group_instance_id="i"),
        (69, 25, 82, 82, 82, 15),
    ),
    "delete the group": (lambda s: s.delete(), (69, 0, 68, 68, 68, 69)),
    "delete an offset": (lambda s: s.delete_offset(UNUSED), (69, 0, 0, 0, 0, 69)),
    "delete an offset of a topic in use": (
        lambda s: s.delete_offset(USED),
        (69, 0, 86, 86, 86, 69),
    ),
}

CELLS: Final = [
    (name, state, expected)
    for name, (_, row) in TABLE.items()
    for state, expected in zip(STATES, row, strict=True)
]
