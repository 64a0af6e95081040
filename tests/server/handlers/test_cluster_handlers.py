"""
DescribeTopicPartitions, DescribeLogDirs, AlterReplicaLogDirs and DescribeQuorum on a node without a
network, in states that test_cluster_answers.py cannot set up.
"""

from __future__ import annotations

from pathlib import Path

from barnabas.protocol.errors import ErrorCode
from barnabas.storage.errors import KafkaStorageError
from barnabas.storage.topic_partition import TopicPartition
from tests.support.cluster_node import DATA, NODE_ID, ClusterNode, ask, started
from tests.support.cluster_requests import quorum, relocation, sizes, topic_pages
from tests.support.some import some

E = ErrorCode
OTHER = Path("/other")


async def with_topics() -> ClusterNode:
    node = await started()
    await node.create("t", 3)
    await node.create("u")
    return node


# DescribeTopicPartitions


async def pages(node: ClusterNode, limit: int) -> list[list[tuple[str, list[int]]]]:
    found = []
    after = None
    while True:
        answer = await ask(node, topic_pages(after=after, limit=limit), 0)
        found.append([(t.name, [p.partition_index for p in t.partitions]) for t in answer.topics])
        if answer.next_cursor is None:
            return found
        after = (answer.next_cursor.topic_name, answer.next_cursor.partition_index)


async def test_broker_limit_of_topic_description_pages_applies() -> None:
    node = await started(max_request_partition_size_limit="2")
    await node.create("t", 3)

    assert [[("t", [0, 1])], [("t", [2])]] == await pages(node, 100)


# DescribeLogDirs


async def test_log_directories_are_described() -> None:
    node = await started(log_dirs=(DATA, OTHER))
    await node.create("t", 3)

    answer = await ask(node, sizes(None), 5)

    assert (0, [str(DATA), str(OTHER)]) == (answer.error_code, [r.log_dir for r in answer.results])
    found = {
        (topic.name, partition.partition_index)
        for result in answer.results
        for topic in result.topics
        for partition in topic.partitions
    }
    assert {("t", 0), ("t", 1), ("t", 2)} == found
    for result in some(answer.results):
        assert 0 == result.error_code
        assert not result.is_cordoned
        assert 0 < result.usable_bytes <= result.total_bytes


async def test_failed_log_directory_is_reported_as_an_error() -> None:
    node = await started(log_dirs=(DATA, OTHER))
    node.failures.maybe_add_offline_log_dir(OTHER, "gone", KafkaStorageError("gone"))
    node.log_manager.handle_failures()

    answer = await ask(node, sizes(None), 5)

    assert [(str(DATA), 0), (str(OTHER), E.KAFKA_STORAGE_ERROR)] == [
        (result.log_dir, result.error_code) for result in answer.results
    ]


# AlterReplicaLogDirs


async def relocated(node: ClusterNode, *wanted: tuple[str, str, int]) -> dict[str, list[int]]:
    answer = await ask(node, relocation(*wanted), 2)
    return {
        topic.topic_name: [partition.error_code for partition in topic.partitions]
        for topic in answer.results
    }


async def test_moving_a_log_to_its_own_directory_succeeds() -> None:
    node = await started(log_dirs=(DATA, OTHER))
    await node.create("t")
    log = node.log_manager.get_log(TopicPartition("t", 0))
    assert log is not None
    here = log.parent_dir
    elsewhere = OTHER if here == DATA else DATA

    assert {"t": [0]} == await relocated(node, (str(here), "t", 0))
    refused = await relocated(node, (str(elsewhere), "t", 0))
    assert {"t": [E.INVALID_REPLICA_ASSIGNMENT]} == refused


async def test_moving_an_unknown_log_or_to_an_unknown_directory_is_refused() -> None:
    node = await with_topics()
    here = str(DATA)

    assert {
        "t": [E.UNKNOWN_TOPIC_OR_PARTITION],
        "nope": [E.UNKNOWN_TOPIC_OR_PARTITION],
        "u": [E.LOG_DIR_NOT_FOUND],
        "x" * 214: [E.INVALID_TOPIC_EXCEPTION],
    } == await relocated(
        node, (here, "t", 9), (here, "nope", 0), ("/nowhere", "u", 0), (here, "x" * 214, 0)
    )


async def test_moving_a_log_to_a_failed_directory_is_refused() -> None:
    node = await started(log_dirs=(DATA, OTHER))
    await node.create("t")
    node.failures.maybe_add_offline_log_dir(OTHER, "gone", KafkaStorageError("gone"))
    node.log_manager.handle_failures()

    assert {"t": [E.KAFKA_STORAGE_ERROR]} == await relocated(node, (str(OTHER), "t", 0))


# DescribeQuorum


async def test_quorum_consists_of_this_node() -> None:
    node = await started()

    answer = await ask(node, quorum(("__cluster_metadata", [0])), 2)

    [[partition]] = [topic.partitions for topic in answer.topics]
    [voter] = partition.current_voters
    assert (NODE_ID, node.log.epoch) == (partition.leader_id, partition.leader_epoch)
    assert (node.log.end_offset, node.log.end_offset) == (
        partition.high_watermark,
        voter.log_end_offset,
    )
    assert (NODE_ID, node.clock.now_ms()) == (voter.replica_id, voter.last_caught_up_timestamp)
    assert [NODE_ID] == [one.node_id for one in answer.nodes]
