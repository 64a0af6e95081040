"""
Metadata, DeleteTopics, DescribeConfigs and DescribeCluster on a node without a network, with
options and in states that test_admin_answers.py and test_cluster_answers.py cannot set up.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest

from barnabas.coordination.cluster.lifecycle import controlled_shutdown
from barnabas.protocol.codec.schema import ZERO_UUID
from barnabas.protocol.errors import (
    ErrorCode,
    InvalidRequest,
    KafkaError,
    TopicDeletionDisabled,
)
from barnabas.protocol.messages.delete_topics import DeleteTopicsResponse
from barnabas.protocol.messages.describe_cluster import DescribeClusterResponse
from barnabas.protocol.messages.describe_configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)
from barnabas.protocol.messages.metadata import MetadataResponse
from barnabas.storage.config.log_config import LogConfig
from tests.support.build import api_request, named
from tests.support.cluster_node import ClusterNode, ask, started

E = ErrorCode
UNKNOWN_ID = UUID(int=12345)


# Metadata


async def metadata(
    node: ClusterNode, version: int, *asked: str | UUID | None, **options: bool
) -> MetadataResponse:
    topics = [{"name": None, **({} if one is None else named(one))} for one in asked]
    answer = await ask(node, api_request("metadata", topics=topics, **options), version)
    assert isinstance(answer, MetadataResponse)
    return answer


@pytest.mark.parametrize("version", range(14))
async def test_metadata_names_partitions_leaders_and_addresses_in_every_version(
    version: int,
) -> None:
    node = await started()
    await node.create("t", 2)

    answer = await metadata(node, version, "t")

    (broker,) = answer.brokers
    assert (1, "broker.example", 19092) == (broker.node_id, broker.host, broker.port)
    (topic,) = answer.topics
    assert (E.NONE, "t", False) == (topic.error_code, topic.name, topic.is_internal)
    assert [(0, 1, [1], [1], []), (1, 1, [1], [1], [])] == [
        (p.partition_index, p.leader_id, p.replica_nodes, p.isr_nodes, p.offline_replicas)
        for p in topic.partitions
    ]
    if version >= 1:
        assert 1 == answer.controller_id
    if version >= 2:
        assert node.cluster_id == answer.cluster_id
    if version >= 7:
        assert [0, 0] == [p.leader_epoch for p in topic.partitions]
    if version >= 10:
        assert topic.topic_id == node.topics.get("t").id  # type: ignore[union-attr]  # it exists


async def test_metadata_request_creates_topics() -> None:
    node = await started(num_partitions="3")

    answer = await metadata(node, 12, "new", "b@d", "new")

    assert [("new", E.NONE, 3), ("b@d", E.INVALID_TOPIC_EXCEPTION, 0)] == [
        (topic.name, topic.error_code, len(topic.partitions)) for topic in answer.topics
    ]
    assert node.partitions.get("new", 2) is not None


@pytest.mark.parametrize(
    ("config", "allowed"), [("true", False), ("false", True), ("false", False)]
)
async def test_metadata_creates_topics_only_if_client_and_broker_allow_it(
    config: str, allowed: bool
) -> None:
    node = await started(auto_create_topics_enable=config)

    answer = await metadata(node, 12, "new", "", allow_auto_topic_creation=allowed)

    assert [E.UNKNOWN_TOPIC_OR_PARTITION, E.INVALID_TOPIC_EXCEPTION] == [
        topic.error_code for topic in answer.topics
    ]
    assert 0 == len(node.topics)


async def test_partition_without_a_leader_is_reported_as_retriable() -> None:
    """
    The broker is giving up its partitions, and clients should ask again.
    """
    node = await started()
    await node.create("t")
    defaults = node.configs.election_defaults()
    for record, _ in controlled_shutdown(node.log.image, 1, defaults):
        node.log.image.apply(record)

    (topic,) = (await metadata(node, 12, "t")).topics

    (partition,) = topic.partitions
    assert (E.LEADER_NOT_AVAILABLE, -1, [], [1]) == (
        partition.error_code,
        partition.leader_id,
        partition.isr_nodes,
        partition.replica_nodes,
    )


# DeleteTopics


async def delete(
    node: ClusterNode, version: int, *states: str | UUID | tuple[str | None, UUID]
) -> list[tuple[str | None, UUID, int, str | None]]:
    if version < 6:
        names = [state for state in states if isinstance(state, str)]
        request = api_request("delete_topics", topic_names=names, timeout_ms=1000)
    else:
        request = api_request("delete_topics", topics=map(_state, states), timeout_ms=1000)
    answer = await ask(node, request, version)
    assert isinstance(answer, DeleteTopicsResponse)
    return [(r.name, r.topic_id, r.error_code, r.error_message) for r in answer.responses]


def _state(state: str | UUID | tuple[str | None, UUID]) -> dict[str, Any]:
    if isinstance(state, str):
        return {"name": state, "topic_id": ZERO_UUID}
    if isinstance(state, UUID):
        return {"name": None, "topic_id": state}
    return {"name": state[0], "topic_id": state[1]}


async def test_delete_topics_refuses_ambiguous_and_duplicate_entries() -> None:
    node = await started()
    await node.create("t")
    await node.create("u")
    topic_id = node.topics.get("t").id  # type: ignore[union-attr]  # it exists

    answer = await delete(
        node, 6,
        (None, ZERO_UUID), ("u", UNKNOWN_ID), "dup", "dup", UNKNOWN_ID, UNKNOWN_ID, "t", topic_id,
    )  # fmt: skip

    assert {
        (None, ZERO_UUID, E.INVALID_REQUEST, "Neither topic name nor id were specified."),
        ("u", UNKNOWN_ID, E.INVALID_REQUEST, "You may not specify both topic name and topic id."),
        ("dup", ZERO_UUID, E.INVALID_REQUEST, "Duplicate topic name."),
        (None, UNKNOWN_ID, E.INVALID_REQUEST, "Duplicate topic id."),
        (
            "t",
            topic_id,
            E.INVALID_REQUEST,
            "The provided topic name maps to an ID that was already supplied.",
        ),
    } == set(answer)
    assert {"t", "u"} == {topic.name for topic in node.topics}


@pytest.mark.parametrize(
    ("version", "error"), [(1, InvalidRequest), (2, InvalidRequest), (6, TopicDeletionDisabled)]
)
async def test_topic_deletion_can_be_disabled(version: int, error: type[KafkaError]) -> None:
    """
    Older versions have no error code of their own for it.
    """
    node = await started(delete_topic_enable="false")
    await node.create("t")

    assert [("t", ZERO_UUID, error.code, None)] == await delete(node, version, "t")
    assert "t" in node.topics


# DescribeCluster


@pytest.mark.parametrize("version", range(3))
async def test_describe_cluster_returns_the_address_of_the_listener(version: int) -> None:
    node = await started(broker_rack="r1")

    answer = await ask(
        node, api_request("describe_cluster", include_cluster_authorized_operations=True), version
    )

    assert isinstance(answer, DescribeClusterResponse)
    assert (node.cluster_id, 1, 8096) == (
        answer.cluster_id,
        answer.controller_id,
        answer.cluster_authorized_operations,
    )
    assert [(1, "broker.example", 19092, "r1", False)] == [
        (b.broker_id, b.host, b.port, b.rack, b.is_fenced) for b in answer.brokers
    ]


# DescribeConfigs


async def describe(
    node: ClusterNode,
    *resources: tuple[int, str] | tuple[int, str, Sequence[str]],
    version: int = 4,
    **options: bool,
) -> DescribeConfigsResponse:
    wanted = [
        {
            "resource_type": resource[0],
            "resource_name": resource[1],
            "configuration_keys": resource[2] if len(resource) > 2 else None,
        }
        for resource in resources
    ]
    answer = await ask(node, api_request("describe_configs", resources=wanted, **options), version)
    assert isinstance(answer, DescribeConfigsResponse)
    return answer


def by_name(answer: DescribeConfigsResponse) -> dict[str, DescribeConfigsResourceResult]:
    (result,) = answer.results
    assert result.error_code == E.NONE
    return {config.name: config for config in result.configs}


async def test_describe_configs_returns_synonyms_and_documentation_on_request() -> None:
    node = await started(log_retention_ms="77", log_retention_hours="1")
    await node.create("t", retention_ms="5")

    found = by_name(
        await describe(
            node,
            (2, "t", ["retention.ms", "nope"]),
            include_synonyms=True,
            include_documentation=True,
        )
    )

    assert ["retention.ms"] == list(found)
    assert [
        ("retention.ms", "5", 1),
        ("log.retention.ms", "77", 4),
        ("log.retention.hours", "1", 4),
        ("log.retention.hours", "168", 5),
    ] == [(s.name, s.value, s.source) for s in found["retention.ms"].synonyms]
    assert LogConfig.options()["retention.ms"].doc == found["retention.ms"].documentation


async def test_describe_configs_with_an_unknown_resource_type_fails_the_request() -> None:
    node = await started()
    await node.create("t")

    answer = await describe(node, (77, "x"), (2, "t"))

    assert {E.INVALID_REQUEST} == {result.error_code for result in answer.results}
