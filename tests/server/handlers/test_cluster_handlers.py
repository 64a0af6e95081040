"""
ListConfigResources, DescribeTopicPartitions, DescribeLogDirs and DescribeQuorum, on a node without
a network. What is expected is what an Apache Kafka 4.3.1 answered.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.server.cluster.image import ResourceType
from barnabas.storage.errors import KafkaStorageError
from barnabas.storage.state_files.file_names import TopicPartition
from tests.support.cluster_node import DATA, NODE_ID, ClusterNode, ask, started
from tests.support.cluster_requests import quorum, relocation, resources, sizes, topic_pages
from tests.support.config_requests import SET, change
from tests.support.some import some

E = ErrorCode
OTHER = Path("/other")
ALL_TYPES = [
    ResourceType.TOPIC,
    ResourceType.BROKER,
    ResourceType.BROKER_LOGGER,
    ResourceType.CLIENT_METRICS,
    ResourceType.GROUP,
]


async def with_topics() -> ClusterNode:
    node = await started()
    await node.create("t", 3)
    await node.create("u")
    return node


# ListConfigResources


async def test_topics_and_brokers_are_resources_and_what_has_configs() -> None:
    node = await with_topics()
    group, metrics = ResourceType.GROUP, ResourceType.CLIENT_METRICS
    await ask(node, change(group, "g", ("consumer.session.timeout.ms", SET, "50000")), 1)
    await ask(node, change(metrics, "m", ("interval.ms", SET, "5000")), 1)

    answer = await ask(node, resources(), 1)

    assert {
        (group, "g"),
        (metrics, "m"),
        (ResourceType.BROKER_LOGGER, "1"),
        (ResourceType.BROKER, "1"),
        (ResourceType.TOPIC, "t"),
        (ResourceType.TOPIC, "u"),
    } == {(r.resource_type, r.resource_name) for r in answer.config_resources}
    assert answer == await ask(node, resources(*ALL_TYPES), 1)


async def test_the_first_version_lists_client_metrics_only() -> None:
    node = await with_topics()
    await ask(node, change(ResourceType.CLIENT_METRICS, "m", ("interval.ms", SET, "5000")), 1)

    answer = await ask(node, resources(), 0)

    assert ["m"] == [resource.resource_name for resource in answer.config_resources]


async def test_one_type_can_be_asked_for_and_an_unknown_one_cannot() -> None:
    node = await with_topics()

    topics = await ask(node, resources(ResourceType.TOPIC), 1)
    unknown = await ask(node, resources(ResourceType.TOPIC, 3), 1)

    assert ["t", "u"] == [resource.resource_name for resource in topics.config_resources]
    assert (E.UNSUPPORTED_VERSION, []) == (unknown.error_code, unknown.config_resources)


# DescribeTopicPartitions


async def pages(node: ClusterNode, limit: int) -> list[list[tuple[str, list[int]]]]:
    """
    All topics, page by page: their names and the partitions of each.
    """
    found = []
    after = None
    while True:
        answer = await ask(node, topic_pages(after=after, limit=limit), 0)
        found.append([(t.name, [p.partition_index for p in t.partitions]) for t in answer.topics])
        if answer.next_cursor is None:
            return found
        after = (answer.next_cursor.topic_name, answer.next_cursor.partition_index)


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (9, [[("t", [0, 1, 2]), ("u", [0])]]),
        (4, [[("t", [0, 1, 2]), ("u", [0])]]),
        (3, [[("t", [0, 1, 2])], [("u", [0])]]),
        (2, [[("t", [0, 1])], [("t", [2]), ("u", [0])]]),
        (1, [[("t", [0])], [("t", [1])], [("t", [2])], [("u", [0])]]),
        (0, [[("t", [0])], [("t", [1])], [("t", [2])], [("u", [0])]]),
    ],
)
async def test_pages_end_at_the_limit(
    limit: int, expected: list[list[tuple[str, list[int]]]]
) -> None:
    assert expected == await pages(await with_topics(), limit)


async def test_the_broker_has_a_limit_of_its_own() -> None:
    node = await started(max_request_partition_size_limit="2")
    await node.create("t", 3)

    assert [[("t", [0, 1])], [("t", [2])]] == await pages(node, 100)


async def test_a_partition_is_described() -> None:
    node = await with_topics()

    answer = await ask(node, topic_pages("u"), 0)

    [topic] = answer.topics
    [partition] = topic.partitions
    known = node.topics.get("u")
    assert known is not None
    assert (known.id, False) == (topic.topic_id, topic.is_internal)
    assert (NODE_ID, 0) == (partition.leader_id, partition.leader_epoch)
    assert ([NODE_ID], [NODE_ID]) == (partition.replica_nodes, partition.isr_nodes)
    assert ([], [], []) == (
        partition.eligible_leader_replicas,
        partition.last_known_elr,
        partition.offline_replicas,
    )


async def test_topics_that_are_not_there_are_errors_of_their_own() -> None:
    node = await with_topics()

    answer = await ask(node, topic_pages("u", "nope", "b@d"), 0)

    assert [
        ("b@d", E.INVALID_TOPIC_EXCEPTION),
        ("nope", E.UNKNOWN_TOPIC_OR_PARTITION),
        ("u", 0),
    ] == [(topic.name, topic.error_code) for topic in answer.topics]


@pytest.mark.parametrize("after", [("t", -1), ("v", 0)])
async def test_a_cursor_that_points_at_nothing_is_refused(after: tuple[str, int]) -> None:
    node = await with_topics()

    answer = await ask(node, topic_pages("t", "u", after=after), 0)

    assert [E.INVALID_REQUEST] * 2 == [topic.error_code for topic in answer.topics]


# DescribeLogDirs


async def test_the_log_directories_are_described() -> None:
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


async def test_only_what_is_asked_for_is_described() -> None:
    node = await with_topics()

    some = await ask(node, sizes([("t", [1, 9]), ("nope", [0])]), 4)
    none = await ask(node, sizes([]), 4)

    [result] = some.results
    [topic] = result.topics
    assert ("t", [1]) == (topic.name, [p.partition_index for p in topic.partitions])
    assert [[]] == [result.topics for result in none.results]


async def test_a_directory_that_failed_is_an_error() -> None:
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


async def test_a_log_is_where_it_is() -> None:
    node = await started(log_dirs=(DATA, OTHER))
    await node.create("t")
    log = node.log_manager.get_log(TopicPartition("t", 0))
    assert log is not None
    here = log.parent_dir
    elsewhere = OTHER if here == DATA else DATA

    assert {"t": [0]} == await relocated(node, (str(here), "t", 0))
    refused = await relocated(node, (str(elsewhere), "t", 0))
    assert {"t": [E.INVALID_REPLICA_ASSIGNMENT]} == refused


async def test_only_logs_that_exist_are_in_directories_that_exist() -> None:
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


async def test_nothing_is_in_a_directory_that_failed() -> None:
    node = await started(log_dirs=(DATA, OTHER))
    await node.create("t")
    node.failures.maybe_add_offline_log_dir(OTHER, "gone", KafkaStorageError("gone"))
    node.log_manager.handle_failures()

    assert {"t": [E.KAFKA_STORAGE_ERROR]} == await relocated(node, (str(OTHER), "t", 0))


# DescribeQuorum


async def test_this_node_is_the_quorum() -> None:
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


@pytest.mark.parametrize(
    "asked",
    [
        [("t", [0])],
        [("__cluster_metadata", [1])],
        [("__cluster_metadata", [0, 1])],
        [("__cluster_metadata", [0]), ("t", [0])],
    ],
)
async def test_there_is_no_quorum_of_anything_else(asked: list[tuple[str, list[int]]]) -> None:
    node = await started()

    answer = await ask(node, quorum(*asked), 2)

    assert [
        (name, [(index, E.UNKNOWN_TOPIC_OR_PARTITION) for index in indexes])
        for name, indexes in asked
    ] == [
        (topic.topic_name, [(p.partition_index, p.error_code) for p in topic.partitions])
        for topic in answer.topics
    ]
