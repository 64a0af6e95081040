"""
CreatePartitions, on a node without a network. What is expected is what an Apache Kafka 4.3.1
answered, but for a request that is too large.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from barnabas.testing.disks.crashable import CrashableFiles
from tests.support.cluster_node import DATA, ClusterNode, ask, started
from tests.support.config_requests import grow, told
from tests.support.crash.points import crash_images
from tests.support.server import batch

E = ErrorCode


async def told_by(node: ClusterNode, request: Any, version: int = 3) -> Any:
    return told(await ask(node, request, version))


@pytest.mark.parametrize("version", range(4))
async def test_partitions_are_added(version: int) -> None:
    """
    They can be written to when the answer comes, and the others are as before.
    """
    node = await started()
    await node.create("p", 2, retention_ms="77")
    before = node.partitions.of_topic("p")

    assert [("p", E.NONE, None)] == await told_by(node, grow("p", 4), version)

    after = node.partitions.of_topic("p")
    assert before == after[:2]
    assert [0, 1, 2, 3] == [partition.index for partition in after]
    assert 0 == after[3].append(memoryview(bytearray(batch("x")))).first_offset
    assert 77 == after[3].log.config.retention_ms
    topic = node.topics.get("p")
    assert topic is not None
    assert topic.id == after[3].log.topic_id
    assert 4 == len(topic.partitions)


async def test_added_partitions_outlive_a_restart() -> None:
    """
    Of a machine that crashes when it has answered.
    """
    files = CrashableFiles()
    node = await started(files)
    await node.create("p")
    await told_by(node, grow("p", 3))

    files.crash()
    again = await started(files)

    assert [0, 1, 2] == [partition.index for partition in again.partitions.of_topic("p")]


async def test_a_crash_leaves_all_of_the_new_partitions_or_none() -> None:
    files = CrashableFiles()
    node = await started(files)
    await node.create("p")

    with crash_images(files) as images:
        await told_by(node, grow("p", 3))

    assert len(images) > 5
    again = [await started(CrashableFiles(image=image)) for image in images]
    assert {1, 3} == {len(node.partitions.of_topic("p")) for node in again}


@pytest.mark.parametrize(
    ("count", "assignments", "code", "message"),
    [
        (2, None, E.INVALID_PARTITIONS, "Topic already has 2 partition(s)."),
        (
            1,
            None,
            E.INVALID_PARTITIONS,
            "The topic p currently has 2 partition(s); 1 would not be an increase.",
        ),
        (
            -1,
            None,
            E.INVALID_PARTITIONS,
            "The topic p currently has 2 partition(s); -1 would not be an increase.",
        ),
        (
            3,
            [[1], [1]],
            E.INVALID_REPLICA_ASSIGNMENT,
            "Attempted to add 1 additional partition(s), but only 2 assignment(s) were specified.",
        ),
        (
            3,
            [],
            E.INVALID_REPLICA_ASSIGNMENT,
            "Attempted to add 1 additional partition(s), but only 0 assignment(s) were specified.",
        ),
        (
            3,
            [[]],
            E.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes an empty replica list.",
        ),
        (
            3,
            [[2]],
            E.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes broker 2, but no such broker is registered.",
        ),
        (
            3,
            [[1, 1]],
            E.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes the broker 1 more than once.",
        ),
        (
            20_000,
            None,
            E.POLICY_VIOLATION,
            "Excessively large number of partitions per request.",
        ),
    ],
)
async def test_what_cannot_be_added(
    count: int, assignments: Sequence[Sequence[int]] | None, code: ErrorCode, message: str
) -> None:
    """
    The reason is given, and the topic stays as it is.
    """
    node = await started()
    await node.create("p", 2)
    before = node.log.end_offset

    assert [("p", code, message)] == await told_by(node, grow("p", count, assignments))
    assert [("p", code, message)] == await told_by(
        node, grow("p", count, assignments, validate=True)
    )

    assert before == node.log.end_offset
    assert 2 == len(node.partitions.of_topic("p"))


@pytest.mark.parametrize("name", ["nope", "b@d", "", "__cluster_metadata"])
async def test_topics_that_are_not_there(name: str) -> None:
    """
    Among them those that were deleted: a deletion is complete when it is answered.
    """
    node = await started()
    await node.create("nope")
    await node.delete("nope")

    assert [(name, E.UNKNOWN_TOPIC_OR_PARTITION, None)] == await told_by(node, grow(name, 5))


async def test_an_assignment() -> None:
    node = await started()
    await node.create("p")

    assert [("p", E.NONE, None)] == await told_by(node, grow("p", 3, [[1], [1]]))
    assert 3 == len(node.partitions.of_topic("p"))


async def test_validate_only() -> None:
    node = await started()
    await node.create("p")
    before = node.log.end_offset

    assert [("p", E.NONE, None)] == await told_by(node, grow("p", 3, validate=True))

    assert before == node.log.end_offset
    assert [DATA / "p-0"] == sorted({path.parent for path in node.files.nodes if "p-" in str(path)})  # type: ignore[attr-defined]  # of a file system in memory


async def test_topics_succeed_or_fail_by_themselves() -> None:
    """
    One that is named twice fails once.
    """
    node = await started()
    await node.create("p")
    await node.create("t")
    wanted = [("p", 3), ("q", 2), ("t", 2), ("p", 4), ("r", 2)]
    request = CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name=n, count=c, assignments=None) for n, c in wanted],
        timeout_ms=1000,
        validate_only=False,
    )

    assert [
        ("p", E.INVALID_REQUEST, "Duplicate topic name."),
        ("q", E.UNKNOWN_TOPIC_OR_PARTITION, None),
        ("t", E.NONE, None),
        ("r", E.UNKNOWN_TOPIC_OR_PARTITION, None),
    ] == await told_by(node, request)

    assert [1, 2] == [len(node.partitions.of_topic(name)) for name in ("p", "t")]


async def test_topics_that_are_too_much_together() -> None:
    """
    As many as fit are added.
    """
    node = await started()
    await node.create("p")
    await node.create("t")
    request = CreatePartitionsRequest(
        topics=[
            CreatePartitionsTopic(name=name, count=6001, assignments=None) for name in ("p", "t")
        ],
        timeout_ms=1000,
        validate_only=True,
    )

    assert [
        ("p", E.NONE, None),
        ("t", E.POLICY_VIOLATION, "Excessively large number of partitions per request."),
    ] == await told_by(node, request)
