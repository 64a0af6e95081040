"""
The timeouts of members of the consumer protocol.
"""

from __future__ import annotations

import pytest

from barnabas.coordination.groups.consumer.member import MemberState
from barnabas.protocol.errors import ErrorCode, UnknownMemberId
from tests.support.consumer_groups import ConsumerCoordination

SESSION_MS = 45_000


def revoking() -> ConsumerCoordination:
    """
    A group in which *a* has to give up one of two partitions to *b*.
    """
    c = ConsumerCoordination({"t": 2})
    epoch = c.enter("a", ["t"], timeout_ms=10_000).member_epoch
    c.enter("b", ["t"])
    c.beat("a", epoch)
    assert MemberState.UNREVOKED_PARTITIONS is c.member("a").state
    return c


def test_member_that_does_not_revoke_in_time_is_removed_despite_heartbeats() -> None:
    c = revoking()

    c.advance(9_999)
    c.beat("a", 2)
    assert "a" in c.consumers.members
    c.advance(1)

    assert ["b"] == list(c.consumers.members)
    with pytest.raises(UnknownMemberId):
        c.beat("a", 2)


def test_member_that_revokes_in_time_stays() -> None:
    c = revoking()
    c.advance(9_999)

    c.report("a")
    assert MemberState.STABLE is c.member("a").state

    c.advance(1)
    assert {"a", "b"} == set(c.consumers.members)


def test_second_revocation_has_the_full_timeout() -> None:
    c = revoking()
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
    c = revoking()
    c.go("a")
    c.go("b")
    before = list(c.batches)

    assert 0 == len(c.queue)
    c.advance(10 * SESSION_MS)
    assert before == c.batches


@pytest.mark.parametrize("restarts", [False, True], ids=["failed write", "restart"])
def test_revocation_timeout_begins_again_after_a_restart_or_a_failed_write(restarts: bool) -> None:
    c = revoking()
    if restarts:
        c.advance(9_000)
        c.restart()
    else:
        c.append_error = ErrorCode.MESSAGE_TOO_LARGE
        c.advance(10_000)
        c.append_error = None

    c.advance(9_999)
    assert "a" in c.consumers.members
    c.advance(1)
    assert "a" not in c.consumers.members


def test_static_member_leaving_during_a_revocation_has_its_session_to_return() -> None:
    c = ConsumerCoordination({"t": 2})
    epoch = c.enter("a", ["t"], timeout_ms=10_000, instance_id="i").member_epoch
    c.enter("b", ["t"])
    c.beat("a", epoch)
    assert MemberState.UNREVOKED_PARTITIONS is c.member("a").state
    c.go("a", -2, instance_id="i")

    c.advance(10_000)

    assert "a" in c.consumers.members


def test_revocation_within_the_epoch_ends_its_timeout() -> None:
    c = ConsumerCoordination({"t": 2}, interval_ms=15_000)
    epoch = c.enter("a", ["t"], timeout_ms=10_000).member_epoch
    c.beat("a", epoch, topics=["u"])
    assert MemberState.UNREVOKED_PARTITIONS is c.member("a").state
    c.beat("a", epoch, owned={})
    assert (MemberState.STABLE, epoch) == (c.member("a").state, c.member("a").member_epoch)

    c.advance(10_000)

    assert "a" in c.consumers.members
