"""
Offsets of streams groups: who may commit, read and delete them.
"""

from __future__ import annotations

import pytest

from barnabas.coordination.groups.describing import is_listed
from barnabas.coordination.groups.streams.describing import describe
from barnabas.coordination.steps import finished
from barnabas.protocol.errors import StaleMemberEpoch
from tests.support.coordination import TOPIC_ID
from tests.support.streams_groups import StreamsCoordination
from tests.support.streams_programs import internal, part, topology

PROGRAM = topology(part("0", ["t"], sinks=["r"]), part("1", repartition=[internal("r", 2)]))


def coordination() -> StreamsCoordination:
    """
    Two members: ``a`` was alone up to epoch 3, then ``b`` came.
    """
    c = StreamsCoordination({"t": 2})
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


def test_older_epoch_may_commit_for_tasks_owned_then() -> None:
    # KIP-1251: for the topics that their subtopologies read.
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


def test_offsets_of_source_topics_cannot_be_deleted_while_the_group_runs() -> None:
    # Repartition topics count too; no member commits changelogs.
    c = coordination()
    assert [True, True, False] == [c.streams.is_subscribed_to(topic) for topic in "tru"]

    c.go("a")
    c.go("b")

    assert [False, False] == [c.streams.is_subscribed_to(topic) for topic in "tr"]


def test_not_ready_state_is_found_by_both_of_its_names() -> None:
    c = StreamsCoordination()
    c.enter("a")
    group = c.streams
    assert "NotReady" == group.state_name

    assert is_listed(group, {"notready"}, ())
    assert is_listed(group, {"not_ready"}, ())
    assert not is_listed(group, {"stable"}, ())


def test_streams_group_description_shows_the_configured_topology() -> None:
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
