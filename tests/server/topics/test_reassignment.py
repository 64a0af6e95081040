"""
ElectLeaders and the reassignments, on a node that has outlived the rest of its cluster. What is
expected is what an Apache Kafka 4.3.1 answered, or what its sources say where it takes a second
broker.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import pytest

from barnabas.coordination.cluster.image import Topic, Versioned
from barnabas.coordination.cluster.partition_registration import (
    NO_LEADER,
    LeaderRecoveryState,
    PartitionRegistration,
)
from barnabas.protocol.errors import ErrorCode, NotLeaderOrFollower
from barnabas.protocol.internal_topics import metadata_records as records
from barnabas.storage.topic_partition import TopicPartition
from barnabas.testing.disks.memory import MemoryFiles
from tests.support.attributes import assert_has
from tests.support.cluster_node import NODE_ID, ClusterNode, ask, started
from tests.support.cluster_requests import election, moves, moving
from tests.support.metadata_records import broker_record, config_record
from tests.support.topic_requests import creatable

E = ErrorCode
GONE = 2
PREFERRED, UNCLEAN = 0, 1
DIRECTORY = UUID(int=99)


async def write(node: ClusterNode, made: Sequence[Versioned]) -> None:
    await node.controller.change(lambda: node.controller.write(made))


async def survivor(
    *replicas: int, files: MemoryFiles | None = None, name: str = "t"
) -> ClusterNode:
    """
    A node that knows of a second broker, which is gone, with a topic on *replicas*.
    """
    node = await started(files)
    other = broker_record(GONE, 7, log_dirs=[DIRECTORY])
    await write(node, [(other, 4)])
    plan = await node.topics.create([creatable(name, -1, -1, [(0, list(replicas))])])
    assert {} == plan.errors
    return node


async def leaderless(files: MemoryFiles, name: str = "t") -> ClusterNode:
    """
    A node whose replica was not in sync when the leader went.
    """
    node = await survivor(NODE_ID, GONE, files=files, name=name)
    topic = node.topic(name)
    change = records.PartitionChangeRecord(
        partition_id=0, topic_id=topic.id, isr=[GONE], leader=NO_LEADER
    )
    await write(node, [(change, 2)])
    await node.stop()
    return await started(files)


def registration(node: ClusterNode) -> PartitionRegistration:
    topic = node.topic("t")
    return topic.partitions[0]


async def move(
    node: ClusterNode, replicas: list[int] | None, **options: bool
) -> tuple[int, str | None]:
    """
    The code and the sentence that answer the wish to have the topic on *replicas*.
    """
    answer = await ask(node, moves(("t", 0, replicas), **options), 1)
    [[partition]] = [topic.partitions for topic in answer.responses]
    return partition.error_code, partition.error_message


async def under_way(node: ClusterNode) -> list[tuple[list[int], list[int], list[int]]]:
    """
    The replicas of the partitions that move, those that come and those that go.
    """
    answer = await ask(node, moving(), 0)
    return [
        (partition.replicas, partition.adding_replicas, partition.removing_replicas)
        for topic in answer.topics
        for partition in topic.partitions
    ]


async def elect(node: ClusterNode, kind: int, name: str = "t") -> int:
    answer = await ask(node, election(kind, (name, [0])), 2)
    [[partition]] = [topic.partition_result for topic in answer.replica_election_results]
    code: int = partition.error_code
    return code


# Moves


async def test_replica_on_a_removed_broker_is_removed_at_once() -> None:
    node = await survivor(GONE, NODE_ID)

    assert (0, None) == await move(node, [NODE_ID])

    now = registration(node)
    assert_has(now, replicas=(NODE_ID,), isr=(NODE_ID,), leader=NODE_ID, leader_epoch=1)
    partition = node.partitions.expect("t", 0)
    assert (1, 1) == (partition.leader_epoch, partition.log.leader_epochs.latest_epoch)
    assert [] == await under_way(node)


async def test_move_to_an_absent_broker_waits_until_it_is_cancelled() -> None:
    node = await survivor(NODE_ID)

    assert (0, None) == await move(node, [GONE])

    assert [([GONE, NODE_ID], [GONE], [NODE_ID])] == await under_way(node)
    assert (NODE_ID, 0) == (registration(node).leader, registration(node).leader_epoch)
    assert DIRECTORY == registration(node).directories[0]

    assert (0, None) == await move(node, None)

    assert [] == await under_way(node)
    assert ((NODE_ID,), NODE_ID) == (registration(node).replicas, registration(node).leader)


async def test_pending_move_survives_a_restart() -> None:
    files = MemoryFiles()
    node = await survivor(NODE_ID, files=files)
    await move(node, [NODE_ID, GONE])
    await node.stop()

    node = await started(files)

    assert [([NODE_ID, GONE], [GONE], [])] == await under_way(node)
    assert NODE_ID == registration(node).leader


async def test_move_to_the_current_replicas_changes_nothing() -> None:
    node = await survivor(NODE_ID)
    end = node.log.end_offset

    assert (0, None) == await move(node, [NODE_ID])

    assert end == node.log.end_offset


async def test_cancelling_a_move_requires_replicas_that_were_in_sync() -> None:
    # Unless the topic allows unclean elections: then this replica counts as in sync.
    node = await survivor(NODE_ID)
    await move(node, [GONE])
    topic = node.topic("t")
    in_sync = records.PartitionChangeRecord(partition_id=0, topic_id=topic.id, isr=[GONE])
    await write(node, [(in_sync, 2)])

    code, sentence = await move(node, None)

    assert E.INVALID_REPLICA_ASSIGNMENT == code
    assert sentence is not None
    assert "unclean" in sentence

    option = config_record("unclean.leader.election.enable", "true")
    await write(node, [(option, 0)])
    assert (0, None) == await move(node, None)
    assert ((NODE_ID,), (NODE_ID,)) == (registration(node).replicas, registration(node).isr)


# Elections


async def test_absent_preferred_leader_is_not_elected() -> None:
    node = await survivor(GONE, NODE_ID)

    assert E.PREFERRED_LEADER_NOT_AVAILABLE == await elect(node, PREFERRED)
    assert NODE_ID == registration(node).leader


async def test_unclean_election_makes_a_partition_available() -> None:
    node = await leaderless(MemoryFiles())
    with pytest.raises(NotLeaderOrFollower):
        node.partitions.expect("t", 0)
    assert E.PREFERRED_LEADER_NOT_AVAILABLE == await elect(node, PREFERRED)

    assert 0 == await elect(node, UNCLEAN)

    now = registration(node)
    assert ((NODE_ID,), NODE_ID) == (now.isr, now.leader)
    assert LeaderRecoveryState.RECOVERING == now.leader_recovery_state
    assert now.leader_epoch == node.partitions.expect("t", 0).leader_epoch
    assert node.log_manager.get_log(TopicPartition("t", 0)) is not None


async def test_election_of_all_partitions_reports_only_changed_ones() -> None:
    node = await leaderless(MemoryFiles())
    await node.create("u")

    answer = await ask(node, election(UNCLEAN, everything=True), 2)

    assert {"t": [0], "u": []} == {
        topic.topic: [result.partition_id for result in topic.partition_result]
        for topic in answer.replica_election_results
    }


async def test_coordinators_are_told_of_reelected_partitions() -> None:
    files = MemoryFiles()
    node = await leaderless(files, "__consumer_offsets")
    heard: list[tuple[str, int]] = []

    def note(topic: Topic) -> None:
        heard.append((topic.name, len(node.partitions.of_topic(topic.name))))

    node.topics.on_topic_created.append(note)

    await elect(node, UNCLEAN, "__consumer_offsets")

    assert [("__consumer_offsets", 1)] == heard
