"""
Static members of consumer groups: members with an instance id, that come back.
"""

from __future__ import annotations

import pytest

from barnabas.coordination.groups.modern.member import LEAVING_FOR_A_WHILE
from barnabas.coordination.groups.modern.records import ModernRecord
from barnabas.protocol.errors import UnknownMemberId
from tests.support.attributes import assert_has
from tests.support.consumer_groups import ConsumerCoordination, check_owners, told
from tests.support.modern_groups import number_of


def away() -> tuple[ConsumerCoordination, int]:
    """
    A group whose only member, *a*, has left for a while; and the epoch of the group.
    """
    c = ConsumerCoordination({"t": 2})
    epoch = c.enter("a", ["t"], instance_id="i").member_epoch
    c.beat("a", epoch)
    answer = c.go("a", -2, instance_id="i")
    assert ("a", -2) == (answer.member_id, answer.member_epoch)
    return c, epoch


def test_static_member_that_leaves_temporarily_keeps_its_partitions() -> None:
    c, _ = away()

    assert ["8 a"] == c.last
    assert_has(
        c.member("a"),
        assigned={c.topic_id(): {0: 0, 1: 0}},
        member_epoch=LEAVING_FOR_A_WHILE,
        previous_member_epoch=0,
    )
    assert "Reconciling" == c.consumers.state_name


def test_static_member_that_leaves_temporarily_completes_its_revocation() -> None:
    c = ConsumerCoordination()
    topic_id = c.create("t", 2)
    epoch = c.enter("a", ["t"], instance_id="i").member_epoch
    c.enter("b", ["t"])
    c.beat("a", epoch, owned={topic_id: [0, 1]})
    assert c.member("a").pending_revocation

    c.go("a", -2, instance_id="i")

    assert not c.member("a").pending_revocation
    c.settle("b")
    assert 1 == len(c.assigned("b")[topic_id])


def test_returning_static_member_replaces_its_predecessor() -> None:
    c = ConsumerCoordination()
    topic_id = c.create("t", 1)
    epoch = c.enter("a", ["t"], instance_id="i").member_epoch
    c.grow("t", 2)
    epoch = c.beat("a", epoch).member_epoch
    assert epoch - 1 == c.member("a").previous_member_epoch
    c.go("a", -2, instance_id="i")

    answer = c.enter("b", ["t"], instance_id="i")

    assert ["-8 a", "-7 a", "-5 a", "5 b", "7 b", "8 b", "8 b"] == c.last
    assert (epoch, {topic_id: [0, 1]}) == (answer.member_epoch, told(answer))
    assert epoch == c.consumers.group_epoch
    assert ["b"] == list(c.consumers.members)
    check_owners(c.consumers)
    replaced, reconciled = (
        record.value
        for record in c.batches[-1]
        if isinstance(record, ModernRecord) and number_of(record) == "8 b"
    )
    assert (0, 0) == (replaced.member_epoch, replaced.previous_member_epoch)
    assert (epoch, 0) == (reconciled.member_epoch, reconciled.previous_member_epoch)
    (target,) = c.last_value(7, "b").topic_partitions
    assert (topic_id, [0, 1]) == (target.topic_id, sorted(target.partitions))


def test_static_member_may_return_under_its_member_id() -> None:
    c, epoch = away()

    answer = c.enter("a", ["t"], instance_id="i")

    assert ["-8 a", "-7 a", "-5 a", "5 a", "7 a", "8 a", "8 a"] == c.last
    assert (epoch, {c.topic_id(): [0, 1]}) == (answer.member_epoch, told(answer))


def test_static_member_returning_with_other_topics_begins_an_epoch() -> None:
    c, epoch = away()
    other_id = c.create("u", 1)

    answer = c.enter("b", ["u"], instance_id="i")

    assert (epoch + 1, {other_id: [0]}) == (answer.member_epoch, told(answer))
    assert ["-8 a", "-7 a", "-5 a", "5 b", "7 b", "8 b", "5 b", "3", "7 b", "6", "8 b"] == c.last


def test_returning_static_member_inherits_the_target() -> None:
    c = ConsumerCoordination()
    topic_id = c.create("t", 4)
    c.enter("a", ["t"], instance_id="i")
    c.enter("b", ["t"], instance_id="j")
    c.settle("a", "b")
    had = c.assigned("a")
    c.go("a", -2, instance_id="i")
    c.grow("t", 5)

    c.enter("z", ["t"], instance_id="i")

    assert set(had[topic_id]) <= set(c.assigned("z")[topic_id])
    check_owners(c.consumers)


def test_static_member_may_omit_its_instance_id_later() -> None:
    c = ConsumerCoordination()
    epoch = c.enter("a", ["t"], instance_id="i").member_epoch

    assert epoch == c.beat("a", epoch).member_epoch
    assert "i" == c.member("a").instance_id


def test_static_member_leaving_permanently_releases_its_instance_id() -> None:
    c = ConsumerCoordination()
    c.enter("a", ["t"], instance_id="i")

    c.go("a", -1, instance_id="i")

    assert ["-8 a", "-7 a", "-5 a", "3"] == c.last
    c.enter("b", ["t"], instance_id="i")
    assert {"i": "b"} == c.consumers.static_members


def test_static_member_that_does_not_return_is_removed() -> None:
    c = ConsumerCoordination()
    c.enter("a", ["t"], instance_id="i")
    c.advance(30_000)
    c.go("a", -2, instance_id="i")

    c.advance(14_999)
    assert ["a"] == list(c.consumers.members)
    c.advance(1)

    assert not c.consumers.members
    assert not c.consumers.static_members


def test_session_of_the_previous_static_member_does_not_end_the_new_one() -> None:
    c, _ = away()
    c.advance(40_000)
    epoch = c.enter("b", ["t"], instance_id="i").member_epoch

    c.advance(10_000)

    assert epoch == c.beat("b", epoch, instance_id="i").member_epoch


def test_dynamic_member_may_become_static() -> None:
    c = ConsumerCoordination()
    c.enter("a", ["t"])

    c.enter("a", ["t"], instance_id="i")

    assert {"i": "a"} == c.consumers.static_members


def test_member_with_another_instance_id_releases_the_first() -> None:
    c = ConsumerCoordination()
    c.enter("a", ["t"], instance_id="i")

    c.enter("a", ["t"], instance_id="j")
    assert {"j": "a"} == c.consumers.static_members
    c.go("a")

    c.enter("b", ["t"], instance_id="i")
    assert {"i": "b"} == c.consumers.static_members


def test_epoch_of_an_absent_static_member_cannot_be_used_in_a_heartbeat() -> None:
    c = ConsumerCoordination()
    epoch = c.enter("a", ["t"], instance_id="i").member_epoch
    c.enter("b", ["t"])
    c.go("a", -2, instance_id="i")
    c.enter("z", ["t"], instance_id="i")

    with pytest.raises(UnknownMemberId, match="Member a is not a member of group"):
        c.beat("a", epoch)


def test_replaced_static_member_does_not_use_the_heartbeat_fast_path() -> None:
    c, epoch = away()

    c.enter("b", ["t"], instance_id="i")

    assert epoch == c.member("b").member_epoch
    assert "Stable" == c.consumers.state_name
