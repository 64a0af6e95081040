from __future__ import annotations

import pytest

from barnabas.coordination.coordinator_runtime.memory import MemoryBudget
from barnabas.coordination.groups.classic.group import ClassicGroup
from barnabas.coordination.groups.classic.member import ClassicGroupMember, MemberProtocol
from barnabas.coordination.groups.classic.state import TRANSITIONS, GroupState
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.join_group import JoinGroupResponse
from barnabas.protocol.messages.sync_group import SyncGroupResponse
from tests.support.coordination import Answer, subscription

S = GroupState


def member(
    member_id: str,
    *names: str,
    instance_id: str | None = None,
    protocol_type: str = "consumer",
    rebalance_timeout_ms: int = 60_000,
    metadata: bytes = b"",
) -> ClassicGroupMember:
    return ClassicGroupMember(
        member_id,
        instance_id=instance_id,
        client_id="client",
        client_host="/127.0.0.1",
        rebalance_timeout_ms=rebalance_timeout_ms,
        session_timeout_ms=10_000,
        protocol_type=protocol_type,
        protocols=tuple(MemberProtocol(name, metadata) for name in names or ("range",)),
    )


def group(state: GroupState = S.PREPARING_REBALANCE, *members: ClassicGroupMember) -> ClassicGroup:
    made = ClassicGroup("group", state, state_timestamp_ms=0)
    for each in members:
        made.add(each)
    return made


def rejoin(
    made: ClassicGroup, member_id: str, reply: Answer[JoinGroupResponse] | None = None, *names: str
) -> None:
    """
    Let a member join again, with other protocols if there are *names*.
    """
    joining = made.members[member_id]
    protocols = tuple(MemberProtocol(name, b"") for name in names) or joining.protocols
    made.update(
        joining, protocols, rebalance_timeout_ms=1, session_timeout_ms=2, reply=reply, held=None
    )


@pytest.mark.parametrize("after", GroupState)
@pytest.mark.parametrize("before", GroupState)
def test_group_changes_its_state_only_along_the_table(
    before: GroupState, after: GroupState
) -> None:
    made = ClassicGroup("group", before, state_timestamp_ms=0)

    if after in TRANSITIONS[before]:
        made.become(after, 17)
        assert (after, before, 17) == (made.state, made.previous_state, made.state_timestamp_ms)
    else:
        with pytest.raises(AssertionError):
            made.become(after, 17)
        assert made.state is before


def test_state_table_is_kafkas() -> None:
    # ``ClassicGroupState`` declares the states before each.
    expected = {
        S.EMPTY: {S.PREPARING_REBALANCE},
        S.PREPARING_REBALANCE: {S.STABLE, S.COMPLETING_REBALANCE, S.EMPTY},
        S.COMPLETING_REBALANCE: {S.PREPARING_REBALANCE},
        S.STABLE: {S.COMPLETING_REBALANCE},
        S.DEAD: set(GroupState),
    }

    actual = {
        state: {before for before, after in TRANSITIONS.items() if state in after}
        for state in GroupState
    }

    assert expected == actual


def test_first_member_leads_and_sets_the_protocol_type() -> None:
    made = group(S.EMPTY, member("a", protocol_type="connect"))
    made.add(member("b", protocol_type="connect"))

    assert "a" == made.leader_id
    assert "connect" == made.protocol_type


def test_next_member_leads_when_the_leader_leaves() -> None:
    made = group(S.STABLE, member("a"), member("b"))

    made.remove("a")
    assert "b" == made.leader_id

    made.remove("b")
    assert made.leader_id is None


def test_removing_a_member_answers_its_waiting_requests() -> None:
    made = group(S.PREPARING_REBALANCE)
    join: Answer[JoinGroupResponse] = Answer()
    sync: Answer[SyncGroupResponse] = Answer()
    joining = member("a")
    made.add(joining, join)
    made.park_sync(joining, sync)

    made.remove("a")

    assert ErrorCode.UNKNOWN_MEMBER_ID == join.now.error_code
    assert "" == join.now.member_id
    assert ErrorCode.UNKNOWN_MEMBER_ID == sync.now.error_code
    assert 0 == made.awaiting_join


def test_second_join_of_a_member_answers_the_first() -> None:
    made = group(S.PREPARING_REBALANCE)
    first: Answer[JoinGroupResponse] = Answer()
    second: Answer[JoinGroupResponse] = Answer()
    joining = member("a")
    made.add(joining, first)

    rejoin(made, "a", second)

    assert ErrorCode.REBALANCE_IN_PROGRESS == first.now.error_code
    assert second.is_parked
    assert 1 == made.awaiting_join
    assert (1, 2) == (joining.rebalance_timeout_ms, joining.session_timeout_ms)


def test_rebalance_waits_for_members_and_pending_member_ids() -> None:
    made = group(S.PREPARING_REBALANCE, member("a"))
    assert not made.have_all_joined

    rejoin(made, "a", Answer())
    assert made.have_all_joined

    made.pending_joins["b"] = MemoryBudget("Members", 2**20).hold(1)
    assert not made.have_all_joined

    made.remove("b")
    assert made.have_all_joined


def test_rebalance_lasts_as_long_as_the_largest_rebalance_timeout() -> None:
    made = group(S.PREPARING_REBALANCE)
    assert 0 == made.rebalance_timeout_ms

    made.add(member("a", rebalance_timeout_ms=5))
    made.add(member("b", rebalance_timeout_ms=9))
    made.add(member("c", rebalance_timeout_ms=7))

    assert 9 == made.rebalance_timeout_ms


@pytest.mark.parametrize(
    ("offers", "expected"),
    [
        ([["range"]], "range"),
        ([["range", "sticky"], ["sticky", "range"], ["sticky", "range"]], "sticky"),
        ([["range", "sticky"], ["range", "sticky"], ["sticky", "range"]], "range"),
        # What not everybody offers is no candidate, and a vote goes to the next choice.
        ([["new", "range"], ["new", "range"], ["range"]], "range"),
        ([["a", "b", "c"], ["c", "b"], ["x", "c", "b"]], "c"),
        # A tie goes to the first vote.
        ([["range", "sticky"], ["sticky", "range"]], "range"),
    ],
)
def test_members_vote_for_the_protocol(offers: list[list[str]], expected: str) -> None:
    # Each member votes for its first protocol that all members offer.
    members = [member(str(index), *names) for index, names in enumerate(offers)]

    assert expected == group(S.PREPARING_REBALANCE, *members).select_protocol()


@pytest.mark.parametrize(
    ("state", "protocol_type", "names", "expected"),
    [
        (S.EMPTY, "consumer", ["range"], True),
        (S.EMPTY, "", ["range"], False),
        (S.EMPTY, "consumer", [], False),
        (S.EMPTY, "anything", ["at all"], True),
        (S.STABLE, "consumer", ["range"], True),
        (S.STABLE, "consumer", ["other", "range"], True),
        (S.STABLE, "consumer", ["sticky"], False),
        (S.STABLE, "consumer", ["other"], False),
        (S.STABLE, "consumer", [], False),
        (S.STABLE, "connect", ["range"], False),
    ],
)
def test_member_must_offer_a_protocol_common_to_all(
    state: GroupState, protocol_type: str, names: list[str], expected: bool
) -> None:
    made = group(
        state,
        *([member("a", "range", "sticky"), member("b", "range")] if state is S.STABLE else []),
    )
    protocols = tuple(MemberProtocol(name, b"") for name in names)

    assert expected == made.supports(protocol_type, protocols)


def test_protocols_of_a_member_count_until_it_leaves() -> None:
    made = group(S.STABLE, member("a", "range"), member("b", "range"))
    sticky = (MemberProtocol("sticky", b""),)
    assert not made.supports("consumer", sticky)

    for member_id in ("a", "b"):
        rejoin(made, member_id, None, "sticky")
    assert made.supports("consumer", sticky)
    assert not made.supports("consumer", (MemberProtocol("range", b""),))

    made.remove("a")
    assert made.supports("consumer", sticky)


class TestStaticMembers:
    def test_new_static_member_takes_leadership_assignment_and_protocols(self) -> None:
        join: Answer[JoinGroupResponse] = Answer()
        old = member("old", instance_id="i")
        old.assignment = b"assigned"
        made = group(S.STABLE)
        made.add(old, join)

        new = made.replace_static_member("i", "old", "new")

        assert {"new": new} == made.members
        assert {"i": "new"} == made.static_members
        assert "new" == made.leader_id
        assert b"assigned" == new.assignment
        assert ErrorCode.FENCED_INSTANCE_ID == join.now.error_code
        assert "old" == join.now.member_id
        assert 0 == made.awaiting_join
        assert made.supports("consumer", (MemberProtocol("range", b""),))

    def test_waiting_sync_of_a_replaced_static_member_is_fenced(self) -> None:
        sync: Answer[SyncGroupResponse] = Answer()
        old = member("old", instance_id="i")
        made = group(S.COMPLETING_REBALANCE, old)
        made.park_sync(old, sync)

        made.replace_static_member("i", "old", "new")

        assert ErrorCode.FENCED_INSTANCE_ID == sync.now.error_code


LATER = b"\0\3" + subscription("x")[2:] + bytes(4) + b"\0\0\0\5" + b"\xff\xff"
"""
Version 3 has owned partitions, a generation and a rack behind the topics.
"""
MALFORMED = [b"", b"\0", b"\xff\xff", b"\0\0\0\0\0\7x", b"nonsense"]


@pytest.mark.parametrize(
    ("protocol_type", "metadata", "topics"),
    [
        ("consumer", [subscription("x", "y"), subscription("y", "z")], frozenset("xyz")),
        ("consumer", [LATER], frozenset("x")),
        *(("consumer", [metadata], None) for metadata in MALFORMED),
        ("connect", [subscription("x")], None),
    ],
)
def test_consumer_group_subscribes_to_the_topics_of_all_members(
    protocol_type: str, metadata: list[bytes], topics: frozenset[str] | None
) -> None:
    members = [
        member(str(number), protocol_type=protocol_type, metadata=each)
        for number, each in enumerate(metadata)
    ]
    made = group(S.PREPARING_REBALANCE, *members)

    made.begin_generation(0)

    assert topics == made.subscribed_topics
    # A malformed subscription may include any topic; other types of groups subscribe to none.
    is_malformed = topics is None and protocol_type == "consumer"
    assert [is_malformed or name in (topics or ()) for name in "wxyz"] == [
        made.is_subscribed_to(name) for name in "wxyz"
    ]


def test_empty_consumer_group_subscribes_to_nothing() -> None:
    made = group(S.PREPARING_REBALANCE, member("a", metadata=subscription("x")))
    made.begin_generation(0)
    made.become(S.PREPARING_REBALANCE, 0)
    made.remove("a")

    made.begin_generation(0)

    assert made.state is S.EMPTY
    assert frozenset() == made.subscribed_topics
    assert not made.is_subscribed_to("x")
