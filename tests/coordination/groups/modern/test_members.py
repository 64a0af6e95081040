"""
Members of consumer, share and streams groups: sessions, heartbeats that change nothing, leaving,
restarts, and writes that fail.
"""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.coordination.groups.modern.records import ModernRecord
from barnabas.protocol.errors import ErrorCode, UnknownMemberId
from tests.support.consumer_groups import ConsumerCoordination
from tests.support.coordination import GROUP
from tests.support.modern_groups import ModernCoordination
from tests.support.share_groups import ShareCoordination
from tests.support.streams_groups import StreamsCoordination

SESSION_MS = 45_000


@pytest.fixture(params=[ConsumerCoordination, ShareCoordination, StreamsCoordination])
def kind(request: pytest.FixtureRequest) -> type[ModernCoordination]:
    kind: type[ModernCoordination] = request.param
    return kind


@pytest.fixture
def c(kind: type[ModernCoordination]) -> ModernCoordination:
    """
    A settled group of the members *a* and *b*.
    """
    return kind.of("a", "b")


def removal(c: ModernCoordination) -> list[str]:
    """
    The roles and members of the records in the last batch; "new" if it is no tombstone.
    """
    records = [record for record in c.batches[-1] if isinstance(record, ModernRecord)]
    assert len(records) == len(c.batches[-1])
    return [("" if r.value is None else "new ") + f"{r.role.name} {r.member_id}" for r in records]


def configure(c: ModernCoordination, **options: int) -> None:
    named: dict[str, Any] = {f"{c.kind}_{name}": value for name, value in options.items()}
    c.set_config(**named)


OF_B = ["CURRENT b", "TARGET b", "MEMBER b", "new EPOCH "]


def test_heartbeat_without_changes_writes_nothing(c: ModernCoordination) -> None:
    before = len(c.batches)

    answer = c.beat("a", c.epoch("a"))

    assert before == len(c.batches)
    assert (c.epoch("a"), 5000) == (answer.member_epoch, answer.heartbeat_interval_ms)
    told = "active_tasks" if c.kind == "streams" else "assignment"
    assert getattr(answer, told) is None


def test_leaving_removes_the_member_and_begins_an_epoch(c: ModernCoordination) -> None:
    epoch = c.modern.group_epoch

    answer = c.go("b")

    assert ("b", -1, 0) == (answer.member_id, answer.member_epoch, answer.heartbeat_interval_ms)
    assert OF_B == removal(c)
    assert (["a"], epoch + 1) == (list(c.modern.members), c.modern.group_epoch)
    with pytest.raises(UnknownMemberId):
        c.go("b")


def test_group_without_members_is_empty_and_continues_with_its_epoch(
    c: ModernCoordination,
) -> None:
    epoch = c.modern.group_epoch
    c.go("a")
    c.go("b")
    assert ("Empty", True) == (c.modern.state_name, c.modern.is_empty)

    assert epoch + 3 == c.arrive("a").member_epoch


def test_known_member_may_join_again(c: ModernCoordination) -> None:
    epoch, target = c.modern.group_epoch, c.modern.targets["a"]

    answer = c.arrive("a")

    assert epoch == answer.member_epoch == c.modern.group_epoch
    assert target == c.modern.targets["a"]


def test_silent_member_is_removed_after_its_session_timeout(c: ModernCoordination) -> None:
    for _ in range(3):
        c.advance(SESSION_MS - 1)
        c.report("a")
        c.beat("b", c.epoch("b"))
    c.advance(SESSION_MS - 1)
    c.report("a")
    assert {"a", "b"} == set(c.modern.members)

    c.advance(1)

    assert OF_B == removal(c)
    assert ["a"] == list(c.modern.members)


def test_changed_timeouts_of_the_group_apply_from_the_next_heartbeat(c: ModernCoordination) -> None:
    configure(c, session_timeout_ms=6000, heartbeat_interval_ms=1234)
    c.advance(SESSION_MS - 1)
    assert 1234 == c.report("a").heartbeat_interval_ms

    c.advance(5_999)
    assert ["a"] == list(c.modern.members)
    c.advance(1)

    assert c.modern.is_empty


@pytest.mark.parametrize("timeout_ms", [SESSION_MS, 6000])
def test_restart_gives_all_members_the_full_session_of_the_group(
    kind: type[ModernCoordination], timeout_ms: int
) -> None:
    c = kind.of("a")
    epoch = c.epoch("a")
    c.advance(SESSION_MS - 1)
    configure(c, session_timeout_ms=timeout_ms)

    c.restart()

    assert epoch == c.epoch("a")
    c.advance(timeout_ms - 1)
    assert ["a"] == list(c.modern.members)
    c.advance(1)
    assert c.modern.is_empty


def test_restart_fences_nobody(c: ModernCoordination) -> None:
    c.restart()

    assert c.epoch("a") == c.beat("a", c.epoch("a")).member_epoch
    assert "Stable" == c.modern.state_name


@pytest.mark.parametrize("leaves", [False, True])
def test_removal_of_a_member_is_retried_after_a_failed_write(
    kind: type[ModernCoordination], leaves: bool
) -> None:
    c = kind.of("a")
    c.append_error = ErrorCode.MESSAGE_TOO_LARGE
    if leaves:
        c.go("a")
    else:
        c.advance(SESSION_MS)
    assert ["a"] == list(c.modern.members)
    c.append_error = None

    c.advance(SESSION_MS)

    assert c.modern.is_empty


def test_refused_join_creates_no_group(kind: type[ModernCoordination]) -> None:
    c = kind()
    c.append_error = ErrorCode.NOT_LEADER_OR_FOLLOWER

    c.arrive("a")

    assert c.modern is None


def test_timeout_of_a_deleted_group_has_no_effect(c: ModernCoordination) -> None:
    c.state.groups.put(GROUP, None)
    before = len(c.batches)

    c.advance(SESSION_MS)

    assert before == len(c.batches)
