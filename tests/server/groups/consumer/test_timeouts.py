"""
The timeouts of members of the consumer protocol.
"""

from __future__ import annotations

import pytest

from barnabas.protocol.errors import ErrorCode, UnknownMemberId
from barnabas.server.groups.consumer.member import MemberState
from tests.support.consumer_groups import ConsumerCoordination

SESSION_MS = 45_000


def revoking(c: ConsumerCoordination, timeout_ms: int = 10_000) -> None:
    """
    A group in which *a* has to give up one of two partitions to *b*.
    """
    c.create("t", 2)
    epoch = c.enter("a", ["t"], timeout_ms=timeout_ms).member_epoch
    c.enter("b", ["t"])
    c.beat("a", epoch)
    assert MemberState.UNREVOKED_PARTITIONS is c.member("a").state


def test_member_is_removed_after_its_session_timeout_without_heartbeats() -> None:
    c = ConsumerCoordination()
    c.create("t", 1)
    c.enter("a", ["t"])

    c.advance(SESSION_MS - 1)
    assert ["a"] == list(c.consumers.members)
    c.advance(1)

    assert ["-8 a", "-7 a", "-5 a", "3"] == c.last
    assert not c.consumers.members


def test_each_heartbeat_extends_the_session() -> None:
    c = ConsumerCoordination()
    epoch = c.enter("a", ["t"]).member_epoch
    for _ in range(3):
        c.advance(SESSION_MS - 1)
        c.beat("a", epoch)
        c.advance(SESSION_MS - 1)
        c.beat("a", epoch, rack_id="r")

    c.advance(SESSION_MS)
    assert not c.consumers.members


def test_changed_session_timeout_applies_from_the_next_heartbeat() -> None:
    c = ConsumerCoordination()
    epoch = c.enter("a", ["t"]).member_epoch
    c.beat("a", epoch)
    c.set_config(consumer_session_timeout_ms=6000)

    c.advance(SESSION_MS - 1)
    assert ["a"] == list(c.consumers.members)
    c.beat("a", epoch)
    c.advance(5_999)
    assert ["a"] == list(c.consumers.members)
    c.advance(1)

    assert not c.consumers.members


def test_changed_heartbeat_interval_is_in_the_next_response() -> None:
    c = ConsumerCoordination()
    epoch = c.enter("a", ["t"]).member_epoch
    c.beat("a", epoch)

    c.set_config(consumer_heartbeat_interval_ms=1234)

    assert 1234 == c.beat("a", epoch).heartbeat_interval_ms
    assert 1234 == c.beat("a", epoch, rack_id="r").heartbeat_interval_ms


def test_member_that_does_not_revoke_in_time_is_removed_despite_heartbeats() -> None:
    c = ConsumerCoordination()
    revoking(c)

    c.advance(9_999)
    c.beat("a", 2)
    assert "a" in c.consumers.members
    c.advance(1)

    assert ["b"] == list(c.consumers.members)
    with pytest.raises(UnknownMemberId):
        c.beat("a", 2)


def test_member_that_revokes_in_time_stays() -> None:
    c = ConsumerCoordination()
    revoking(c)
    c.advance(9_999)

    c.report("a")
    assert MemberState.STABLE is c.member("a").state

    c.advance(1)
    assert {"a", "b"} == set(c.consumers.members)


def test_second_revocation_has_the_full_timeout() -> None:
    c = ConsumerCoordination()
    revoking(c)
    c.advance(9_000)
    c.report("a")
    epoch = c.member("a").member_epoch
    c.create("u", 1)

    c.beat("a", epoch, topics=["u"])

    assert MemberState.UNREVOKED_PARTITIONS is c.member("a").state
    c.advance(9_999)
    assert "a" in c.consumers.members
    c.advance(1)
    assert "a" not in c.consumers.members


def test_leaving_cancels_all_timeouts() -> None:
    c = ConsumerCoordination()
    revoking(c)
    c.go("a")
    c.go("b")
    before = list(c.batches)

    assert 0 == len(c.queue)
    c.advance(10 * SESSION_MS)
    assert before == c.batches


def test_restart_gives_all_members_a_full_session_timeout() -> None:
    c = ConsumerCoordination()
    c.enter("a", ["t"])
    c.advance(SESSION_MS - 1)

    c.restart()

    c.advance(SESSION_MS - 1)
    assert ["a"] == list(c.consumers.members)
    c.advance(1)
    assert not c.consumers.members


def test_restart_uses_the_timeouts_of_the_group() -> None:
    c = ConsumerCoordination()
    c.enter("a", ["t"])
    c.set_config(consumer_session_timeout_ms=6000)

    c.restart()

    c.advance(6000)
    assert not c.consumers.members


def test_restart_gives_a_full_revocation_timeout() -> None:
    c = ConsumerCoordination()
    revoking(c)
    c.advance(9_000)

    c.restart()

    c.advance(9_999)
    assert "a" in c.consumers.members
    c.advance(1)
    assert "a" not in c.consumers.members


def test_restart_fences_nobody() -> None:
    c = ConsumerCoordination()
    c.create("t", 2)
    epoch = c.enter("a", ["t"]).member_epoch

    c.restart()

    assert epoch == c.beat("a", epoch).member_epoch
    assert "Stable" == c.consumers.state_name


def test_removal_of_an_expired_member_is_retried_after_a_failed_write() -> None:
    c = ConsumerCoordination()
    c.enter("a", ["t"])
    c.append_error = ErrorCode.MESSAGE_TOO_LARGE
    c.advance(SESSION_MS)
    assert ["a"] == list(c.consumers.members)
    c.append_error = None

    c.advance(SESSION_MS)

    assert not c.consumers.members


def test_revocation_timeout_is_retried_after_a_failed_write() -> None:
    c = ConsumerCoordination()
    revoking(c)
    c.append_error = ErrorCode.MESSAGE_TOO_LARGE
    c.advance(10_000)
    assert "a" in c.consumers.members
    c.append_error = None

    c.advance(10_000)

    assert "a" not in c.consumers.members


def test_member_whose_leave_failed_is_removed_after_its_session_timeout() -> None:
    c = ConsumerCoordination()
    c.enter("a", ["t"])
    c.append_error = ErrorCode.MESSAGE_TOO_LARGE
    c.go("a")
    c.append_error = None
    assert ["a"] == list(c.consumers.members)

    c.advance(SESSION_MS)

    assert not c.consumers.members


def test_timeout_of_a_deleted_group_has_no_effect() -> None:
    c = ConsumerCoordination()
    revoking(c)
    c.state.groups.put("group", None)
    before = list(c.batches)

    c.advance(SESSION_MS)

    assert before == c.batches


def test_static_member_leaving_during_a_revocation_has_its_session_to_return() -> None:
    c = ConsumerCoordination()
    c.create("t", 2)
    epoch = c.enter("a", ["t"], timeout_ms=10_000, instance_id="i").member_epoch
    c.enter("b", ["t"])
    c.beat("a", epoch)
    assert MemberState.UNREVOKED_PARTITIONS is c.member("a").state
    c.go("a", -2, instance_id="i")

    c.advance(10_000)

    assert "a" in c.consumers.members


def test_revocation_within_the_epoch_ends_its_timeout() -> None:
    """
    The next epoch has no assignment yet.
    """
    c = ConsumerCoordination(interval_ms=15_000)
    c.create("t", 2)
    epoch = c.enter("a", ["t"], timeout_ms=10_000).member_epoch
    c.beat("a", epoch, topics=["u"])
    assert MemberState.UNREVOKED_PARTITIONS is c.member("a").state
    c.beat("a", epoch, owned={})
    assert (MemberState.STABLE, epoch) == (c.member("a").state, c.member("a").member_epoch)

    c.advance(10_000)

    assert "a" in c.consumers.members
