from __future__ import annotations

from typing import Any

import pytest

from barnabas.coordination.groups.classic.state import GroupState
from barnabas.protocol.codec.primitives import MAX_STRING_BYTES
from barnabas.protocol.errors import ErrorCode, FencedInstanceId
from tests.support.coordination import Coordination, Offer

S = GroupState
OFFER: Offer = (("range", b"r"), ("sticky", b"s"))


def stable_with_static(*instances: str, **options: Any) -> tuple[Coordination, dict[str, str]]:
    """
    A stable group of static members, the first of them the leader.
    """
    c = Coordination()
    joins = {i: c.join(instance_id=i, protocols=OFFER, **options) for i in instances}
    c.advance(0)
    ids = {i: join.now.member_id for i, join in joins.items()}
    leader_id = joins[instances[0]].now.leader
    assert leader_id == ids[instances[0]]
    for i in instances[1:]:
        c.sync(ids[i], 1, instance_id=i)
    c.sync(leader_id, 1, {m: i.encode() for i, m in ids.items()}, instance_id=instances[0])
    assert c.is_in(S.STABLE)
    return c, ids


@pytest.mark.parametrize(
    "names",
    [{"instance_id": "i" * MAX_STRING_BYTES}, {"client_id": "c" * MAX_STRING_BYTES}],
    ids=["instance", "client"],
)
@pytest.mark.parametrize("version", [3, 5, 9])
def test_name_too_long_for_a_member_id_is_refused(names: dict[str, Any], version: int) -> None:
    """
    The id has a UUID behind the name, and no record or answer could contain it.
    """
    c = Coordination()

    answer = c.join(**names, version=version, protocols=OFFER).now

    assert ErrorCode.UNKNOWN_SERVER_ERROR == answer.error_code
    assert not c.group.members
    assert not c.group.pending_joins


def test_static_member_needs_no_member_id_first() -> None:
    c = Coordination()

    join = c.join(instance_id="i", client_id="client")
    c.advance(0)

    assert ErrorCode.NONE == join.now.error_code
    # The ids of dynamic members begin with the id of the client.
    assert join.now.member_id.startswith("i-")
    assert c.join(client_id="client").now.member_id.startswith("client-")


class TestAMemberThatStartsAgain:
    @pytest.mark.parametrize("version", [5, 8, 9])
    def test_restarted_static_member_gets_its_assignment_without_a_rebalance(
        self, version: int
    ) -> None:
        c, ids = stable_with_static("a", "b")

        answer = c.join(instance_id="b", protocols=OFFER, version=version).now

        assert ErrorCode.NONE == answer.error_code
        assert 1 == answer.generation_id
        assert ids["b"] != answer.member_id
        assert ids["a"] == answer.leader
        assert [] == answer.members
        assert not answer.skip_assignment
        assert b"b" == c.sync(answer.member_id, 1, instance_id="b").now.assignment
        assert c.is_in(S.STABLE)

    def test_restarted_static_member_is_written_with_its_new_id(self) -> None:
        c, ids = stable_with_static("a", "b")

        new_id = c.join(instance_id="b", protocols=OFFER).now.member_id
        c.restart()

        assert {ids["a"], new_id} == set(c.group.members)
        assert b"b" == c.group.members[new_id].assignment
        c.heartbeat(new_id, 1, instance_id="b")

    def test_restarted_static_member_fences_its_predecessor(self) -> None:
        c, ids = stable_with_static("a", "b")
        c.join(instance_id="b", protocols=OFFER)

        with pytest.raises(FencedInstanceId):
            c.heartbeat(ids["b"], 1, instance_id="b")
        assert (
            ErrorCode.FENCED_INSTANCE_ID
            == c.join(ids["b"], instance_id="b", protocols=OFFER).now.error_code
        )

    @pytest.mark.parametrize("version", [8, 9])
    def test_returning_leader_gets_the_members_with_skip_assignment(self, version: int) -> None:
        # KIP-814. Before v9 a leader assigns partitions again, so its previous id is named.
        c, ids = stable_with_static("a", "b")

        answer = c.join(instance_id="a", protocols=OFFER, version=version).now

        assert c.group.is_leader(answer.member_id)
        assert (version >= 9) == answer.skip_assignment
        assert (answer.member_id if version >= 9 else ids["a"]) == answer.leader
        members = {"a": answer.member_id, "b": ids["b"]} if version >= 9 else {}
        assert members == {m.group_instance_id: m.member_id for m in answer.members}

    @pytest.mark.parametrize(
        ("protocols", "rebalances"),
        [((("range", b"new"), ("sticky", b"s")), False), ((("sticky", b"s"),), True)],
        ids=["other metadata", "other protocol"],
    )
    def test_restarted_static_member_that_changes_the_protocol_begins_a_rebalance(
        self, protocols: Offer, rebalances: bool
    ) -> None:
        c, _ = stable_with_static("a", "b")

        answer = c.join(instance_id="b", protocols=protocols)

        assert rebalances == answer.is_parked
        assert c.is_in(S.PREPARING_REBALANCE if rebalances else S.STABLE)

    def test_restarted_static_member_begins_a_rebalance_while_assignments_are_pending(self) -> None:
        c = Coordination()
        a = c.join(instance_id="a", protocols=OFFER)
        b = c.join(instance_id="b", protocols=OFFER)
        c.advance(0)
        sync = c.sync(b.now.member_id, 1, instance_id="b")

        again = c.join(instance_id="b", protocols=OFFER)

        assert ErrorCode.FENCED_INSTANCE_ID == sync.now.error_code
        assert again.is_parked
        assert c.is_in(S.PREPARING_REBALANCE)
        c.join(a.now.member_id, instance_id="a", protocols=OFFER)
        assert 2 == again.now.generation_id

    def test_restarted_static_member_replaces_a_waiting_join(self) -> None:
        c, _ = stable_with_static("a", "b")
        c.join(instance_id="c", protocols=OFFER)
        first = c.join(instance_id="b", protocols=OFFER)
        second = c.join(instance_id="b", protocols=OFFER)

        assert ErrorCode.FENCED_INSTANCE_ID == first.now.error_code
        assert second.is_parked

    def test_static_member_keeps_its_old_id_if_the_new_one_cannot_be_written(self) -> None:
        c, ids = stable_with_static("a", "b")
        before = c.durable()
        c.append_error = ErrorCode.KAFKA_STORAGE_ERROR

        answer = c.join(
            instance_id="b", protocols=(("range", b"new"), ("sticky", b"s")), version=8
        ).now

        assert ErrorCode.NOT_COORDINATOR == answer.error_code
        assert "" == answer.member_id
        assert before == c.durable()
        assert 0 == c.group.awaiting_join
        c.heartbeat(ids["b"], 1, instance_id="b")

    def test_restarted_static_member_waits_for_a_rebalance_begun_before_its_write(self) -> None:
        c, ids = stable_with_static("a", "b")
        c.is_slow = True
        again = c.join(instance_id="b", protocols=OFFER)
        assert again.is_parked

        c.is_slow = False
        c.join(instance_id="c", protocols=OFFER)
        c.commit()
        assert again.is_parked

        c.join(ids["a"], instance_id="a", protocols=OFFER)
        assert 2 == again.now.generation_id
        assert 3 == len(c.group.members)


class TestAMemberThatIsAway:
    def test_absent_static_member_keeps_its_place_until_its_session_expires(self) -> None:
        c, ids = stable_with_static("a", "b", session_timeout_ms=30_000)

        c.advance(29_999)
        assert set(ids.values()) == set(c.group.members)
        c.advance(1)

        assert c.group.is_empty or set() == set(c.group.members)

    def test_absent_static_member_is_not_removed_by_a_rebalance(self) -> None:
        c, ids = stable_with_static(
            "a", "b", session_timeout_ms=300_000, rebalance_timeout_ms=10_000
        )
        answer = c.join(
            ids["a"],
            instance_id="a",
            protocols=OFFER,
            session_timeout_ms=300_000,
            rebalance_timeout_ms=10_000,
        )

        c.advance(10_000)

        assert 2 == answer.now.generation_id
        assert {"a", "b"} == {m.group_instance_id for m in answer.now.members}

    def test_rebalance_with_only_absent_static_members_waits_for_their_sessions(self) -> None:
        c, ids = stable_with_static(
            "a", "b", session_timeout_ms=25_000, rebalance_timeout_ms=10_000
        )
        dynamic, join = c.new_member(protocols=OFFER, rebalance_timeout_ms=10_000)
        c.leave(dynamic)
        assert ErrorCode.UNKNOWN_MEMBER_ID == join.now.error_code

        c.advance(20_000)
        assert c.is_in(S.PREPARING_REBALANCE)
        assert set(ids.values()) == set(c.group.members)

        c.advance(5_000)
        assert c.group.is_empty

    def test_static_member_can_be_removed_by_its_instance_id(self) -> None:
        c, ids = stable_with_static("a", "b")

        response = c.leave(("", "b"), ("", "nobody"), (ids["b"], "b"))

        assert [0, 25, 25] == [m.error_code for m in response.members]
        assert ["", "", ids["b"]] == [m.member_id for m in response.members]
        assert ["b", "nobody", "b"] == [m.group_instance_id for m in response.members]
        assert [ids["a"]] == list(c.group.members)
