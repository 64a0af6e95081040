"""
CreatePartitions, on a node without a network. What is expected is what an Apache Kafka 4.3.1
answered, but for a request that is too large.
"""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.protocol.errors import ErrorCode
from tests.support.build import api_request
from tests.support.cluster_node import ClusterNode, ask, started
from tests.support.config_requests import grow, told
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
    topic = node.topic("p")
    assert topic.id == after[3].log.topic_id
    assert 4 == len(topic.partitions)


async def test_partitions_are_added_for_as_many_topics_as_fit() -> None:
    node = await started()
    await node.create("p")
    await node.create("t")
    topics = [{"name": name, "count": 6001, "assignments": None} for name in ("p", "t")]
    request = api_request("create_partitions", topics=topics, timeout_ms=1000, validate_only=True)

    assert [
        ("p", E.NONE, None),
        ("t", E.POLICY_VIOLATION, "Excessively large number of partitions per request."),
    ] == await told_by(node, request)


async def test_each_topic_of_a_request_succeeds_or_fails_alone() -> None:
    node = await started()
    await node.create("t")
    topics = [{"name": name, "count": 2, "assignments": None} for name in ("unknown", "t")]
    request = api_request("create_partitions", topics=topics, timeout_ms=1000, validate_only=False)

    assert [
        ("unknown", E.UNKNOWN_TOPIC_OR_PARTITION, None),
        ("t", E.NONE, None),
    ] == await told_by(node, request)
    assert 2 == len(node.partitions.of_topic("t"))
