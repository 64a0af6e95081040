"""
Offsets of streams groups: who may commit, read and delete them.
"""

from __future__ import annotations

import pytest

from barnabas.protocol.errors import StaleMemberEpoch, UnknownMemberId, UnsupportedVersion
from barnabas.server.groups.describing import is_listed, listed
from barnabas.server.groups.streams.describing import describe
from barnabas.server.scheduling.turns import finished
from tests.support.coordination import GROUP, TOPIC_ID
from tests.support.streams_groups import StreamsCoordination
from tests.support.streams_programs import internal, part, topology

PROGRAM = topology(part("0", ["t"], sinks=["r"]), part("1", repartition=[internal("r", 2)]))


def coordination() -> StreamsCoordination:
    """
    Two members: ``a`` was alone up to epoch 3, then ``b`` came.
    """
    c = StreamsCoordination()
    c.create("t", 2)
    c.enter("a", PROGRAM)
    c.create_missing()
    c.settle("a")
    assert 3 == c.member("a").member_epoch
    c.enter("b", PROGRAM)
    c.settle("a", "b")
    assert 4 == c.member("a").member_epoch
    return c


def commit(
    c: StreamsCoordination, member: str, epoch: int, topic: str = "t", partition: int = 0
) -> None:
    c.commit_offsets(
        {(topic, partition): 7}, member_id=member, generation_id=epoch, topic_id=TOPIC_ID
    )


def test_member_commits_at_its_epoch() -> None:
    c = coordination()

    commit(c, "a", 4)

    assert c.state.offsets.is_known(GROUP, "t", 0)


def test_unknown_member_cannot_commit() -> None:
    c = coordination()

    with pytest.raises(UnknownMemberId):
        commit(c, "x", 4)
    with pytest.raises(UnknownMemberId):
        commit(c, "", -1)
    with pytest.raises(StaleMemberEpoch, match="5 is newer than current member epoch 4"):
        commit(c, "a", 5)


def test_commit_versions_before_the_protocol_are_refused() -> None:
    with pytest.raises(UnsupportedVersion, match="using the streams group protocol"):
        coordination().commit_offsets({("t", 0): 1}, member_id="a", generation_id=4, version=8)


def test_older_epoch_may_commit_for_tasks_owned_then() -> None:
    """
    For the topics that their subtopologies read (KIP-1251).
    """
    c = coordination()
    kept = {(number, each) for number, tasks in c.active("a").items() for each in tasks}
    topics = {"0": "t", "1": "r"}
    lost = {(number, each) for number in "01" for each in range(2)} - kept

    for number, each in kept:
        commit(c, "a", 3, topics[number], each)
    for number, each in lost:
        with pytest.raises(StaleMemberEpoch, match=f"Task {number}-{each} is not assigned"):
            commit(c, "a", 3, topics[number], each)
        with pytest.raises(StaleMemberEpoch, match="3 is older than assignment epoch 4"):
            commit(c, "b", 3, topics[number], each)
    with pytest.raises(StaleMemberEpoch, match="Topic u is not in the topology"):
        commit(c, "a", 3, "u")


def test_only_members_at_their_epoch_fetch_offsets() -> None:
    group = coordination().streams

    group.validate_fetch(None, -1)
    group.validate_fetch("a", 4)
    with pytest.raises(StaleMemberEpoch, match="3 does not match the expected member epoch 4"):
        group.validate_fetch("a", 3)
    with pytest.raises(UnknownMemberId):
        group.validate_fetch("x", 4)


def test_offsets_of_source_topics_cannot_be_deleted_while_the_group_runs() -> None:
    """
    Including repartition topics; nobody in the group commits changelogs.
    """
    c = coordination()
    assert [True, True, False] == [c.streams.is_subscribed_to(topic) for topic in "tru"]

    c.go("a")
    c.go("b")

    assert [False, False] == [c.streams.is_subscribed_to(topic) for topic in "tr"]


def test_anybody_commits_to_an_empty_group() -> None:
    c = coordination()
    c.go("a")
    c.go("b")

    commit(c, "", -1)

    assert c.state.offsets.is_known(GROUP, "t", 0)


def test_streams_group_is_listed_by_type_and_state() -> None:
    group = coordination().streams

    line = listed(group)
    assert ("streams", "streams", "Stable") == (
        line.protocol_type,
        line.group_type,
        line.group_state,
    )
    assert is_listed(group, {"stable"}, {"streams"})
    assert not is_listed(group, {"empty"}, {"streams"})
    assert not is_listed(group, set(), {"consumer"})


def test_not_ready_state_is_found_by_both_of_its_names() -> None:
    c = StreamsCoordination()
    c.enter("a")
    group = c.streams
    assert "NotReady" == group.state_name

    assert is_listed(group, {"notready"}, ())
    assert is_listed(group, {"not_ready"}, ())
    assert not is_listed(group, {"stable"}, ())


def test_streams_group_description_shows_the_configured_topology() -> None:
    """
    Once its topics are known, with their numbers of partitions.
    """
    c = coordination()
    shown = finished(describe(c.streams)).topology
    assert shown is not None
    assert [2] == [
        topic.partitions
        for each in shown.subtopologies or ()
        for topic in each.repartition_source_topics
    ]
    c.restart()

    found = finished(describe(c.streams))

    assert found.topology is not None
    assert ["0", "1"] == [each.subtopology_id for each in found.topology.subtopologies or ()]
    assert ["a", "b"] == [member.member_id for member in found.members]
    assert ("Stable", 4, 4) == (found.group_state, found.group_epoch, found.assignment_epoch)
    for member in found.members:
        assert member.assignment == member.target_assignment
