from __future__ import annotations

from typing import Any

import pytest

from barnabas.coordination.groups.classic.state import GroupState
from tests.support.coordination import GROUP, Coordination, Offer, subscription

MINUTE = 60_000
RETENTION = 10 * MINUTE


def consumer(*topics: str) -> Offer:
    return (("range", subscription(*topics)),)


def coordination(**options: Any) -> Coordination:
    return Coordination(offsets_retention_minutes=RETENTION // MINUTE, **options)


HALF_AN_HOUR = 30 * MINUTE


def committed_by_member(offer: Offer, *topics: str, **options: Any) -> tuple[Coordination, str]:
    """
    A stable group of one member, which has committed an offset of each topic.
    """
    c = coordination()
    (a,) = c.stable(1, offers=[offer], **{"session_timeout_ms": HALF_AN_HOUR} | options)
    c.commit_offsets({(topic, 0): 1 for topic in topics}, member_id=a, generation_id=1)
    return c, a


def expire(c: Coordination) -> None:
    c.write_all(c.state.deleting.expire(c.now_ms))


def left(c: Coordination) -> set[tuple[str, int]]:
    committed = c.state.offsets.committed.of_group(GROUP)
    return {(topic, index) for topic, offsets in committed.items() for index in offsets}


def left_after(c: Coordination, ms: int) -> set[tuple[str, int]]:
    c.advance(ms)
    expire(c)
    return left(c)


def test_offsets_of_a_simple_group_expire_individually_after_their_commit() -> None:
    c = coordination()
    c.commit_offsets({("t", 0): 1})
    c.advance(MINUTE)
    c.commit_offsets({("t", 1): 1})

    assert {("t", 0), ("t", 1)} == left_after(c, RETENTION - MINUTE - 1)

    assert {("t", 1)} == left_after(c, 1)
    assert c.state.groups.get(GROUP) is not None

    assert set() == left_after(c, MINUTE)
    assert c.state.groups.get(GROUP) is None
    assert [] == list(c.replayed().groups)


def test_offsets_expire_from_when_the_group_became_empty() -> None:
    c, a = committed_by_member(consumer("t"), "t")
    c.advance(20 * MINUTE)
    c.leave(a)

    assert {("t", 0)} == left_after(c, RETENTION - 1)

    assert set() == left_after(c, 1)
    assert c.state.groups.get(GROUP) is None


def test_time_when_a_group_became_empty_survives_a_restart() -> None:
    c, a = committed_by_member(consumer("t"), "t")
    c.advance(5000)
    c.leave(a)
    c.advance(RETENTION - 1)
    c.restart()

    expire(c)
    assert {("t", 0)} == left(c)
    assert set() == left_after(c, 1)


def test_offsets_of_topics_without_subscribers_expire() -> None:
    c, _ = committed_by_member(consumer("t"), "t", "u")

    assert {("t", 0)} == left_after(c, RETENTION)
    assert c.is_in(GroupState.STABLE)


def test_nothing_expires_during_a_rebalance() -> None:
    # The members may subscribe to other topics.
    c, _ = committed_by_member(consumer("t"), "u")
    c.advance(RETENTION)
    c.new_member(protocols=consumer("t"))
    assert c.is_in(GroupState.PREPARING_REBALANCE)

    expire(c)

    assert {("u", 0)} == left(c)


@pytest.mark.parametrize(
    ("protocol_type", "metadata"), [("connect", subscription("t")), ("consumer", b"?")]
)
def test_nothing_expires_with_a_malformed_subscription(protocol_type: str, metadata: bytes) -> None:
    c, _ = committed_by_member((("range", metadata),), "u", protocol_type=protocol_type)

    assert {("u", 0)} == left_after(c, RETENTION)


def test_offset_may_have_its_own_expiry_time() -> None:
    c = coordination()
    c.commit_offsets({("t", 0): 1}, retention_ms=1000, version=4)
    c.commit_offsets({("t", 1): 1}, retention_ms=2 * RETENTION, version=4)

    assert {("t", 0), ("t", 1)} == left_after(c, 999)
    assert {("t", 1)} == left_after(c, 1)

    c.restart()
    assert {("t", 1)} == left_after(c, 2 * RETENTION - 1001)
    assert set() == left_after(c, 1)


def test_empty_group_without_offsets_is_removed_at_once() -> None:
    c = coordination()
    (a,) = c.stable(1)
    c.leave(a)

    expire(c)

    assert c.state.groups.get(GROUP) is None
    assert [] == list(c.replayed().groups)


def test_group_with_members_is_kept_without_offsets() -> None:
    c, _ = committed_by_member(consumer("t"))
    batches = len(c.batches)

    c.advance(RETENTION)
    expire(c)

    assert c.is_in(GroupState.STABLE)
    assert batches == len(c.batches)


def test_offsets_and_groups_of_an_open_transaction_do_not_expire() -> None:
    c = coordination()
    c.commit_offsets({("t", 0): 1, ("t", 1): 1})
    c.state.apply(c.batches[0][0], 2, 77)

    assert {("t", 0)} == left_after(c, RETENTION)
    assert c.state.groups.get(GROUP) is not None

    c.state.offsets.end_transaction(77, committed=False)
    expire(c)
    assert set() == left(c)
    assert c.state.groups.get(GROUP) is None


def test_group_with_only_pending_offsets_is_kept() -> None:
    c = coordination()
    c.commit_offsets({("t", 0): 1})
    c.state.apply(c.batches[0][0], 1, 77)
    c.state.offsets.committed.remove(GROUP, "t", 0)

    c.advance(RETENTION)
    expire(c)

    assert c.state.groups.get(GROUP) is not None


def test_offsets_of_groups_before_kafka_2_1_expire_after_their_commit() -> None:
    # Their records do not have the time when the group became empty.
    c, a = committed_by_member(consumer("t"), "t")
    c.leave(a)
    c.group.state_timestamp_ms = None

    assert {("t", 0)} == left_after(c, RETENTION - 1)
    assert set() == left_after(c, 1)
