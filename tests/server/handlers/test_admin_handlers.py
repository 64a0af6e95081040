"""
Metadata, CreateTopics, DeleteTopics, DescribeConfigs and DescribeCluster, on a node without a
network. What is expected is what an Apache Kafka 4.3.1 answered.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from barnabas.protocol.codec.schema import ZERO_UUID
from barnabas.protocol.errors import (
    ErrorCode,
    InvalidRequest,
    KafkaError,
    MismatchedEndpointType,
    PolicyViolation,
    TopicDeletionDisabled,
    UnsupportedEndpointType,
)
from barnabas.protocol.messages.create_topics import CreatableTopic, CreateTopicsResponse
from barnabas.protocol.messages.delete_topics import DeleteTopicsResponse
from barnabas.protocol.messages.describe_cluster import DescribeClusterResponse
from barnabas.protocol.messages.describe_configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)
from barnabas.protocol.messages.metadata import MetadataResponse
from barnabas.server.cluster.lifecycle import controlled_shutdown
from barnabas.server.dynamic_config.brokers import ConfigSource
from barnabas.storage.config.log_config import LogConfig
from barnabas.storage.config.option_values import OptionType
from tests.support.build import api_request, named
from tests.support.cluster_node import ClusterNode, ask, started
from tests.support.some import some
from tests.support.topic_requests import creatable

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


async def all_topics(node: ClusterNode, version: int) -> MetadataResponse:
    request = api_request("metadata", topics=[] if version == 0 else None)
    answer = await ask(node, request, version)
    assert isinstance(answer, MetadataResponse)
    return answer


@pytest.mark.parametrize("version", range(14))
async def test_metadata_of_a_topic(version: int) -> None:
    """
    In every version it names the partitions, their leader, and where it can be reached.
    """
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


@pytest.mark.parametrize("version", [0, 1, 12, 13])
async def test_metadata_of_all_topics(version: int) -> None:
    """
    v0 asks for them with an empty list, later versions with null.
    """
    node = await started()
    await node.create("a")
    await node.create("__consumer_offsets")

    answer = await all_topics(node, version)

    assert {"a", "__consumer_offsets"} == {topic.name for topic in answer.topics}
    if version >= 1:
        assert {"a": False, "__consumer_offsets": True} == {
            topic.name: topic.is_internal for topic in answer.topics
        }
        assert [] == (await metadata(node, version)).topics


async def test_metadata_creates_topics() -> None:
    """
    They can be used when the answer comes, and the answer says how.
    """
    node = await started(num_partitions="3")

    answer = await metadata(node, 12, "new", "b@d", "new")

    assert [("new", E.NONE, 3), ("b@d", E.INVALID_TOPIC_EXCEPTION, 0)] == [
        (topic.name, topic.error_code, len(topic.partitions)) for topic in answer.topics
    ]
    assert node.partitions.get("new", 2) is not None


@pytest.mark.parametrize(
    ("config", "allowed"), [("true", False), ("false", True), ("false", False)]
)
async def test_metadata_creates_nothing_unless_both_sides_want_it(
    config: str, allowed: bool
) -> None:
    """
    The broker and the client may each forbid it.
    """
    node = await started(auto_create_topics_enable=config)

    answer = await metadata(node, 12, "new", "", allow_auto_topic_creation=allowed)

    assert [E.UNKNOWN_TOPIC_OR_PARTITION, E.INVALID_TOPIC_EXCEPTION] == [
        topic.error_code for topic in answer.topics
    ]
    assert 0 == len(node.topics)


async def test_metadata_by_id() -> None:
    """
    As soon as one topic is asked for by its id, names are not looked at.
    """
    node = await started()
    await node.create("t")
    topic_id = node.topics.get("t").id  # type: ignore[union-attr]  # it exists

    answer = await metadata(
        node, 12, topic_id, UNKNOWN_ID, "other", include_topic_authorized_operations=True
    )

    assert [("t", E.NONE, 3576), (None, E.UNKNOWN_TOPIC_ID, -(2**31))] == [
        (topic.name, topic.error_code, topic.topic_authorized_operations) for topic in answer.topics
    ]
    assert "other" not in node.topics


@pytest.mark.parametrize("version", [12, 13])
async def test_metadata_of_what_has_neither_name_nor_id(version: int) -> None:
    """
    Fails the whole request, unless another topic has an id: then names are not looked at.
    """
    node = await started()
    await node.create("t", 1)

    answer = await metadata(node, version, "t", None, "new")

    assert [("t", -1), ("", -1), ("new", -1)] == [(t.name, t.error_code) for t in answer.topics]
    assert ([], {12: 0, 13: -1}[version]) == (answer.brokers, answer.error_code)
    assert node.topics.get("new") is None
    answer = await metadata(node, version, None, UUID(int=7))
    assert [(None, E.UNKNOWN_TOPIC_ID)] == [(t.name, t.error_code) for t in answer.topics]


@pytest.mark.parametrize("version", [10, 11])
async def test_metadata_by_id_before_it_was_possible(version: int) -> None:
    """
    The answers of these versions have no place for it.
    """
    node = await started()

    answer = await metadata(node, version, UNKNOWN_ID)
    assert [(E.INVALID_REQUEST, "", UNKNOWN_ID)] == [
        (topic.error_code, topic.name, topic.topic_id) for topic in answer.topics
    ]

    request = api_request("metadata", topics=[{"topic_id": UNKNOWN_ID, "name": "a"}])
    (topic,) = (await ask(node, request, version)).topics
    assert (E.INVALID_REQUEST, "a") == (topic.error_code, topic.name)


async def test_authorized_operations() -> None:
    """
    Everything is allowed; nothing is said unless it is asked for.
    """
    node = await started()
    await node.create("t")
    options = {
        "include_cluster_authorized_operations": True,
        "include_topic_authorized_operations": True,
    }

    with_bits = await metadata(node, 8, "t", **options)
    without = await metadata(node, 8, "t")

    assert (8096, 3576) == (
        with_bits.cluster_authorized_operations,
        with_bits.topics[0].topic_authorized_operations,
    )
    assert (-(2**31), -(2**31)) == (
        without.cluster_authorized_operations,
        without.topics[0].topic_authorized_operations,
    )


async def test_a_partition_without_a_leader() -> None:
    """
    While the broker gives its partitions up, clients are told to ask again.
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


# CreateTopics


async def create(
    node: ClusterNode, version: int, *topics: CreatableTopic, validate_only: bool = False
) -> CreateTopicsResponse:
    request = api_request("create_topics", topics=topics, validate_only=validate_only)
    answer = await ask(node, request, version)
    assert isinstance(answer, CreateTopicsResponse)
    return answer


@pytest.mark.parametrize("version", range(2, 8))
async def test_create_topics(version: int) -> None:
    """
    Those that can be created are, and the others say why not.
    """
    node = await started()

    answer = await create(
        node, version, creatable("t", 2, configs={"retention.ms": "5"}), creatable("b@d")
    )

    good, bad = answer.topics
    assert ("t", E.NONE, None) == (good.name, good.error_code, good.error_message)
    assert ("b@d", E.INVALID_TOPIC_EXCEPTION) == (bad.name, bad.error_code)
    assert bad.error_message is not None
    assert node.partitions.get("t", 1) is not None
    if version >= 5:
        assert (2, 1, 0) == (
            good.num_partitions,
            good.replication_factor,
            good.topic_config_error_code,
        )
        assert good.configs is not None
        found = {config.name: (config.value, config.config_source) for config in good.configs}
        assert 33 == len(found)
        assert ("5", ConfigSource.DYNAMIC_TOPIC) == found["retention.ms"]
        assert ("1", ConfigSource.DYNAMIC_DEFAULT_BROKER) == found["min.insync.replicas"]
        assert ("delete", ConfigSource.DEFAULT) == found["cleanup.policy"]
        assert (-1, -1, []) == (bad.num_partitions, bad.replication_factor, bad.configs)
    if version >= 7:
        assert node.topics.get_by_id(good.topic_id) is not None
        assert ZERO_UUID == bad.topic_id


async def test_create_topics_that_cannot_be() -> None:
    """
    A name that comes twice, and the log of the metadata itself.
    """
    node = await started()

    answer = await create(
        node, 7, creatable("dup"), creatable("__cluster_metadata"), creatable("dup"), creatable("t")
    )

    assert [
        ("dup", E.INVALID_REQUEST, "Duplicate topic name."),
        (
            "__cluster_metadata",
            E.INVALID_REQUEST,
            "Creation of internal topic __cluster_metadata is prohibited.",
        ),
        ("t", E.NONE, None),
    ] == [(topic.name, topic.error_code, topic.error_message) for topic in answer.topics]


async def test_validate_only() -> None:
    """
    The answer is that of a creation, with a random id, and nothing is created.
    """
    node = await started()

    answer = await create(node, 7, creatable("t", -1, -1), creatable("x", 0), validate_only=True)

    good, bad = answer.topics
    assert (E.NONE, 1, 1) == (good.error_code, good.num_partitions, good.replication_factor)
    assert ZERO_UUID != good.topic_id
    assert E.INVALID_PARTITIONS == bad.error_code
    assert 0 == len(node.topics)


async def test_a_creation_that_is_too_large() -> None:
    """
    Every topic of the request fails.
    """
    node = await started()

    answer = await create(node, 7, creatable("a", 10_001), creatable("b"))

    assert {(E.POLICY_VIOLATION, "Excessively large number of partitions per request.")} == {
        (topic.error_code, topic.error_message) for topic in answer.topics
    }
    assert PolicyViolation.code == E.POLICY_VIOLATION
    assert 0 == len(node.topics)


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


@pytest.mark.parametrize("version", range(1, 7))
async def test_delete_topics(version: int) -> None:
    """
    By name in every version; those that do not exist say so.
    """
    node = await started()
    await node.create("t")

    answer = await delete(node, version, "t", "nope")

    assert {("t", E.NONE), ("nope", E.UNKNOWN_TOPIC_OR_PARTITION)} == {
        (name, code) for name, _, code, _ in answer
    }
    assert "t" not in node.topics


async def test_delete_topics_by_id() -> None:
    """
    The answer names the topic that it was.
    """
    node = await started()
    await node.create("t")
    topic_id = node.topics.get("t").id  # type: ignore[union-attr]  # it exists

    answer = await delete(node, 6, topic_id, UNKNOWN_ID)

    assert {("t", topic_id, E.NONE), (None, UNKNOWN_ID, E.UNKNOWN_TOPIC_ID)} == {
        result[:3] for result in answer
    }
    assert "t" not in node.topics


async def test_deletions_that_make_no_sense() -> None:
    """
    Neither or both of name and id, or one of them twice.
    """
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
async def test_deletion_can_be_disabled(version: int, error: type[KafkaError]) -> None:
    """
    Older clients know no code of its own for it.
    """
    node = await started(delete_topic_enable="false")
    await node.create("t")

    assert [("t", ZERO_UUID, error.code, None)] == await delete(node, version, "t")
    assert "t" in node.topics


# DescribeCluster


@pytest.mark.parametrize("version", range(3))
async def test_describe_cluster(version: int) -> None:
    """
    This broker, as it can be reached over the listener that the request came in on.
    """
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


@pytest.mark.parametrize(
    ("endpoint_type", "error", "message"),
    [
        (
            2,
            MismatchedEndpointType,
            "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type"
            " CONTROLLER",
        ),
        (3, UnsupportedEndpointType, "Unsupported endpoint type 3"),
    ],
)
async def test_describe_cluster_of_controllers(
    endpoint_type: int, error: type[KafkaError], message: str
) -> None:
    """
    Brokers do not say where controllers are (KIP-919).
    """
    fields = {"include_cluster_authorized_operations": False, "endpoint_type": endpoint_type}
    request = api_request("describe_cluster", **fields)

    answer = await ask(await started(), request, 1)

    assert (error.code, message, []) == (answer.error_code, answer.error_message, answer.brokers)


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


async def test_describe_a_topic() -> None:
    """
    All of its options, each with its source and its type.
    """
    node = await started(log_retention_ms="77")
    await node.create("t", cleanup_policy="compact", segment_ms="5")

    found = by_name(await describe(node, (2, "t")))

    assert 33 == len(found)
    assert {
        "cleanup.policy": ("compact", 1, OptionType.LIST),
        "segment.ms": ("5", 1, OptionType.LONG),
        "retention.ms": ("77", 4, OptionType.LONG),
        "min.insync.replicas": ("1", 3, OptionType.INT),
        "preallocate": ("false", 5, OptionType.BOOLEAN),
        "min.cleanable.dirty.ratio": ("0.5", 5, OptionType.DOUBLE),
        "compression.type": ("producer", 5, OptionType.STRING),
    } == {
        name: (found[name].value, found[name].config_source, found[name].config_type)
        for name in ("cleanup.policy", "segment.ms", "retention.ms", "min.insync.replicas",
                     "preallocate", "min.cleanable.dirty.ratio", "compression.type")
    }  # fmt: skip
    assert not any(config.read_only or config.is_sensitive for config in found.values())
    assert all(config.synonyms == [] for config in some(found.values()))
    assert all(config.documentation is None for config in some(found.values()))


async def test_synonyms_and_documentation() -> None:
    """
    On request: the value at each level, and what the option means.
    """
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


async def test_describe_this_broker() -> None:
    """
    What was configured, what can be changed while it runs, and what is stored for all brokers.
    """
    node = await started(log_cleaner_threads="2")

    found = by_name(await describe(node, (4, "1"), include_synonyms=True))

    threads = found["log.cleaner.threads"]
    assert ("2", 4, False) == (threads.value, threads.config_source, threads.read_only)
    assert [("log.cleaner.threads", "2", 4), ("log.cleaner.threads", "1", 5)] == [
        (s.name, s.value, s.source) for s in threads.synonyms
    ]
    minimum = found["min.insync.replicas"]
    assert [("min.insync.replicas", "1", 3), ("min.insync.replicas", "1", 5)] == [
        (s.name, s.value, s.source) for s in minimum.synonyms
    ]
    assert found["node.id"].read_only
    assert (None, 5, []) == (
        found["log.retention.ms"].value,
        found["log.retention.ms"].config_source,
        found["log.retention.ms"].synonyms,
    )


async def test_describe_what_holds_for_all_brokers() -> None:
    """
    The broker without a name has what is stored for all of them.
    """
    node = await started()

    found = by_name(await describe(node, (4, ""), include_synonyms=True))

    assert {"min.insync.replicas": ("1", 3, [("min.insync.replicas", "1", 3)])} == {
        name: (c.value, c.config_source, [(s.name, s.value, s.source) for s in c.synonyms])
        for name, c in found.items()
    }


@pytest.mark.parametrize(
    ("resource", "code", "message"),
    [
        ((2, "nope"), E.UNKNOWN_TOPIC_OR_PARTITION, ""),
        (
            (2, "b@d"),
            E.INVALID_TOPIC_EXCEPTION,
            "Topic name is invalid: 'b@d' contains one or more characters other than ASCII"
            " alphanumerics, '.', '_' and '-'",
        ),
        (
            (4, "2"),
            E.INVALID_REQUEST,
            "Unexpected broker id, expected 1 or empty string, but received 2",
        ),
        ((4, "x"), E.INVALID_REQUEST, "Broker id must be an integer, but it is: x"),
    ],
)
async def test_resources_that_cannot_be_described(
    resource: tuple[int, str], code: ErrorCode, message: str
) -> None:
    """
    One of them does not spoil the others of the request.
    """
    node = await started()
    await node.create("t")

    bad, good = (await describe(node, resource, (2, "t"))).results

    assert (code, *resource) == (bad.error_code, bad.resource_type, bad.resource_name)
    assert message == bad.error_message
    assert E.NONE == good.error_code


async def test_a_type_of_resource_that_there_is_not() -> None:
    """
    It spoils the whole request.
    """
    node = await started()
    await node.create("t")

    answer = await describe(node, (77, "x"), (2, "t"))

    assert {E.INVALID_REQUEST} == {result.error_code for result in answer.results}


async def test_descriptions_agree_with_those_of_kafka(golden: Path) -> None:
    """
    A topic and a broker with the same configs are described as Apache Kafka described them.
    """
    described = json.loads((golden / "metadata" / "described-configs.json").read_text())
    node = await started(log_index_size_max_bytes=None)
    await node.create("topic-1", cleanup_policy="compact", segment_ms="123456")
    stored = {
        (4, ""): {"log.retention.ms": "86400000", "message.max.bytes": "2000000"},
        (4, "1"): {"log.cleaner.threads": "2"},
    }
    for resource, values in stored.items():
        node.log.image.configs.setdefault(resource, {}).update(values)
    numbers = {source.name + "_CONFIG": source.value for source in ConfigSource}

    ours = by_name(await describe(node, (2, "topic-1")))
    theirs = described["TOPIC topic-1"]
    assert theirs.keys() == ours.keys()
    for name, (value, source, read_only, sensitive, kind) in some(theirs.items()):
        found = ours[name]
        assert (value, numbers[source], read_only, sensitive, kind) == (
            found.value,
            found.config_source,
            found.read_only,
            found.is_sensitive,
            OptionType(found.config_type).name,
        ), name


async def test_the_broker_is_described_as_by_kafka(golden: Path) -> None:
    """
    Types and defaults are Kafka's for every option that both have, but for what one node is better
    off with; what cannot be changed there cannot be changed here.
    """
    described = json.loads((golden / "metadata" / "described-configs.json").read_text())
    node = await started(log_index_size_max_bytes=None)

    ours = by_name(await describe(node, (4, "1")))
    theirs = described["BROKER 1"]

    common = theirs.keys() & ours.keys()
    assert len(common) > 100
    assert not [n for n in common if theirs[n][4] != OptionType(ours[n].config_type).name]
    assert not [n for n in common if theirs[n][2] and not ours[n].read_only]
    by_default = {n for n in common if theirs[n][1] == "DEFAULT_CONFIG" == _source(ours[n])}
    assert {"log.dir"} == {n for n in by_default if theirs[n][0] != ours[n].value}


def _source(config: DescribeConfigsResourceResult) -> str:
    return ConfigSource(config.config_source).name + "_CONFIG"
