"""
The memory that members of groups take is bounded, over all groups of a broker.
"""

from __future__ import annotations

import gc

from barnabas.coordination.coordinator_runtime.timers import LEFT_OVERS
from barnabas.coordination.groups.classic.joining import MEMBER_BYTES, PROTOCOL_BYTES
from barnabas.protocol.errors import ErrorCode
from tests.support.coordination import Coordination
from tests.support.limits import stated

NOT_NOW = ErrorCode.COORDINATOR_NOT_AVAILABLE
OF_EVERY_MEMBER = 2 * MEMBER_BYTES + PROTOCOL_BYTES + 1000  # the group and the ids included


def offer(size: int) -> list[tuple[str, bytes]]:
    return [("range", bytes(size))]


def test_memory_limit_of_members_matches_the_documentation() -> None:
    assert stated("members") == Coordination().memory.members.limit_bytes


def test_members_of_all_groups_share_one_memory_budget() -> None:
    c = Coordination()
    c.memory.members.limit_bytes = 1_000_000
    size = 300_000 - OF_EVERY_MEMBER

    joined = [c.join(group_id=f"g{n}", protocols=offer(size), version=3) for n in range(4)]

    assert [True, True, True, False] == [each.is_parked for each in joined]
    assert NOT_NOW == joined[3].now.error_code
    assert c.state.groups.get("g3") is None
    assert 900_000 >= c.memory.members.used_bytes >= 3 * size


def test_memory_of_removed_members_is_available_again() -> None:
    c = Coordination()
    c.memory.members.limit_bytes = 1_000_000
    c.join(protocols=offer(900_000), version=3)
    assert NOT_NOW == c.join(group_id="other", protocols=offer(900_000), version=3).now.error_code

    c.advance(10 * 60_000)
    gc.collect()

    assert c.memory.members.used_bytes < OF_EVERY_MEMBER
    assert c.join(group_id="other", protocols=offer(900_000), version=3).is_parked


def test_pending_member_ids_count_towards_the_memory_budget() -> None:
    # They begin with the id of the client.
    c = Coordination()
    c.memory.members.limit_bytes = 1_000_000

    codes = [c.join(client_id="c" * 30_000).now.error_code for _ in range(20)]

    assert ErrorCode.MEMBER_ID_REQUIRED == codes[0]
    assert NOT_NOW == codes[-1]
    assert c.memory.members.used_bytes <= 1_000_000
    assert ErrorCode.UNKNOWN_MEMBER_ID == c.join("somebody").now.error_code


def test_member_may_rejoin_when_the_memory_is_exhausted() -> None:
    c = Coordination()
    joined = c.join(version=3, protocols=offer(500))
    c.advance(0)
    member_id = joined.now.member_id
    c.memory.members.limit_bytes = c.memory.members.used_bytes

    assert NOT_NOW == c.join(member_id, version=3, protocols=offer(501)).now.error_code
    again = c.join(member_id, version=3, protocols=offer(500))

    assert ErrorCode.NONE == again.now.error_code
    assert c.memory.members.limit_bytes == c.memory.members.used_bytes


def test_assignments_count_until_the_next_generation() -> None:
    c = Coordination()
    joined = c.join(version=3)
    c.advance(0)
    member_id, generation = joined.now.member_id, joined.now.generation_id
    before = c.memory.members.used_bytes
    c.memory.members.limit_bytes = before + 1000

    refused = c.sync(member_id, generation, {member_id: bytes(1001)})
    taken = c.sync(member_id, generation, {member_id: bytes(1000)})

    assert (NOT_NOW, ErrorCode.NONE) == (refused.now.error_code, taken.now.error_code)
    assert c.memory.members.limit_bytes == c.memory.members.used_bytes
    c.join(member_id, version=3)
    assert before == c.memory.members.used_bytes


def test_timers_of_departed_members_are_released_early() -> None:
    c = Coordination()
    for _ in range(3 * LEFT_OVERS):
        c.leave(c.join(session_timeout_ms=1_800_000).now.member_id)

    assert len(c.queue._heap) <= LEFT_OVERS + 1
    assert 0 == len(c.queue)
