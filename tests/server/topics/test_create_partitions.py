"""
CreatePartitions, on a node without a network. What is expected is what an Apache Kafka 4.3.1
answered, but for a request that is too large.
"""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from barnabas.testing.disks.crashable import CrashableFiles
from tests.support.cluster_node import ClusterNode, ask, started
from tests.support.config_requests import grow, told
from tests.support.crash.points import crash_images
from tests.support.server import batch

E = ErrorCode


async def told_by(node: ClusterNode, request: Any, version: int = 3) -> Any:
    return told(await ask(node, request, version))


@pytest.mark.parametrize("version", range(4))
async def test_added_partitions_are_usable_when_the_response_arrives(version: int) -> None:
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


async def test_added_partitions_survive_a_machine_crash() -> None:
    files = CrashableFiles()
    node = await started(files)
    await node.create("p")
    await told_by(node, grow("p", 3))

    files.crash()
    again = await started(files)

    assert [0, 1, 2] == [partition.index for partition in again.partitions.of_topic("p")]


async def test_crash_leaves_all_new_partitions_or_none() -> None:
    files = CrashableFiles()
    node = await started(files)
    await node.create("p")

    with crash_images(files) as images:
        await told_by(node, grow("p", 3))

    assert len(images) > 5
    again = [await started(CrashableFiles(image=image)) for image in images]
    assert {1, 3} == {len(node.partitions.of_topic("p")) for node in again}


async def test_partitions_are_added_for_as_many_topics_as_fit() -> None:
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
