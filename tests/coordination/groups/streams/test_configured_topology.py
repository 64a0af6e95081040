"""
The topics of a topology: how many partitions they have, and which are missing.
"""

from __future__ import annotations

import pytest

from barnabas.coordination.groups.streams.configured_topology import ConfiguredTopology, configured
from barnabas.coordination.groups.streams.statuses import StatusCode
from barnabas.coordination.groups.streams.topology import topology_of
from barnabas.protocol.errors import KafkaError, StreamsInvalidTopology, UnknownServerError
from barnabas.protocol.messages.streams_group_heartbeat import Subtopology
from tests.support.streams_programs import internal, part, topology
from tests.support.topic_table import TopicTable


def configure(*parts: Subtopology, **topics: int) -> ConfiguredTopology:
    """
    A topology in a cluster with these topics.
    """
    table = TopicTable()
    for name, count in topics.items():
        table.put(name, count)
    return configured(topology_of(topology(*parts)), table)


def missing(found: ConfiguredTopology) -> dict[str, int]:
    return {name: topic.num_partitions for name, topic in found.missing.items()}


def problem(found: ConfiguredTopology) -> tuple[StatusCode, str]:
    assert found.problem is not None
    return found.problem.code, found.problem.detail


def test_topology_without_internal_topics_is_ready() -> None:
    found = configure(part("0", ["t", "u"]), t=3, u=5)

    assert found.is_ready
    assert found.subtopologies is not None
    assert 5 == found.subtopologies["0"].task_count


def test_missing_source_topics_are_named_in_order() -> None:
    found = configure(part("0", ["d", "b", "t"]), part("1", ["c", "a"]), t=1)

    expected = "Source topics a, b, c and 1 additional topics are missing."
    assert (StatusCode.MISSING_SOURCE_TOPICS, expected) == problem(found)
    assert not found.missing
    assert found.subtopologies is None


def test_changelog_has_as_many_partitions_as_the_largest_source() -> None:
    changelog = internal("c", 0, 2, **{"cleanup.policy": "compact"})

    found = configure(part("0", ["t", "u"], changelogs=[changelog]), t=3, u=5)

    assert (StatusCode.MISSING_INTERNAL_TOPICS, "Internal topics are missing: c") == problem(found)
    topic = found.missing["c"]
    assert (5, 2) == (topic.num_partitions, topic.replication_factor)
    assert [("cleanup.policy", "compact")] == [(each.name, each.value) for each in topic.configs]


def test_default_replication_factor_is_that_of_the_broker() -> None:
    found = configure(part("0", ["t"], changelogs=[internal("c")]), t=1)

    assert -1 == found.missing["c"].replication_factor


def test_repartition_topic_is_as_large_as_its_sources() -> None:
    one, other = internal("r1"), internal("r2")
    parts = [
        part("0", repartition=[other], changelogs=[internal("c")]),
        part("1", repartition=[one], sinks=["r2"]),
        part("2", ["t"], sinks=["r1"]),
    ]

    assert {"r1": 4, "r2": 4, "c": 4} == missing(configure(*parts, t=4))
    assert {"r1": 4, "r2": 4, "c": 4} == missing(configure(*reversed(parts), t=4))


def test_largest_source_determines_a_repartition_topic() -> None:
    parts = [part("0", ["t", "u"], sinks=["r"]), part("1", repartition=[internal("r")])]

    assert {"r": 5} == missing(configure(*parts, t=3, u=5))
    assert {"r": 5} == missing(configure(*parts, t=5, u=3))


def test_repartition_topic_may_declare_its_size() -> None:
    parts = [part("0", ["t"], sinks=["r"]), part("1", repartition=[internal("r", 7)])]

    found = configure(*parts, t=4)

    assert {"r": 7} == missing(found)
    assert found.subtopologies is not None
    assert 7 == found.subtopologies["1"].task_count


def test_a_topic_that_says_its_size_stands_before_one_that_does_not() -> None:
    parts = [
        part("0", ["t"], sinks=["r", "s"]),
        part("1", repartition=[internal("r", 7), internal("s")]),
    ]

    assert {"r": 7, "s": 4} == missing(configure(*parts, t=4))


def test_copartitioned_topics_must_have_the_same_size() -> None:
    found = configure(part("0", ["u", "t"], copartition=[((0, 1), ())]), t=3, u=5)

    expected = "Following topics do not have the same number of partitions: [{t=3, u=5}]"
    assert (StatusCode.INCORRECTLY_PARTITIONED_TOPICS, expected) == problem(found)


def test_repartition_topic_follows_its_copartitioned_topic() -> None:
    def parts(count: int) -> list[Subtopology]:
        return [
            part("0", ["t"], sinks=["r"]),
            part("1", ["u"], repartition=[internal("r", count)], copartition=[((0,), (0,))]),
        ]

    assert {"r": 5} == missing(configure(*parts(0), t=3, u=5))
    expected = (
        "Number of partitions [2] of repartition topic [r] doesn't match number of partitions [5]"
        " of the source topic."
    )
    assert (StatusCode.INCORRECTLY_PARTITIONED_TOPICS, expected) == problem(
        configure(*parts(2), t=3, u=5)
    )


@pytest.mark.parametrize(
    ("first", "second", "expected"), [(0, 0, {"r": 5, "s": 5}), (0, 2, {"r": 2, "s": 2})]
)
def test_copartitioned_repartition_topics_get_the_same_size(
    first: int, second: int, expected: dict[str, int]
) -> None:
    # The largest size counts unless a topic declares its own.
    parts = [
        part("0", ["t"], sinks=["r"]),
        part("1", ["u"], sinks=["s"]),
        part(
            "2",
            repartition=[internal("r", first), internal("s", second)],
            copartition=[((), (0, 1))],
        ),
    ]

    assert expected == missing(configure(*parts, t=3, u=5))


def test_declared_sizes_must_agree() -> None:
    parts = [
        part("0", ["t"], sinks=["r", "s"]),
        part(
            "1",
            repartition=[internal("r", 2), internal("s", 3)],
            copartition=[((), (0, 1))],
        ),
    ]

    expected = "Following topics do not have the same number of partitions: [{r=2, s=3}]"
    assert (StatusCode.INCORRECTLY_PARTITIONED_TOPICS, expected) == problem(configure(*parts, t=3))


def test_internal_topic_of_another_size_is_an_error() -> None:
    found = configure(part("0", ["t"], changelogs=[internal("c")]), t=3, c=2)

    expected = "Existing topic c has different number of partitions: expected 3, found 2"
    assert (StatusCode.INCORRECTLY_PARTITIONED_TOPICS, expected) == problem(found)


def test_nothing_is_missing_when_all_topics_exist() -> None:
    found = configure(part("0", ["t"], changelogs=[internal("c")]), t=3, c=3)

    assert found.is_ready
    assert found.subtopologies is not None
    assert found.subtopologies["0"].is_stateful


@pytest.mark.parametrize(
    ("parts", "error", "sentence"),
    [
        (
            [part("0", repartition=[internal("r")], sinks=["r"])],
            StreamsInvalidTopology,
            "There may be loops in the topology that cannot be resolved.",
        ),
        (
            [part("0", ["t"], repartition=[internal("r")])],
            StreamsInvalidTopology,
            "a repartition source topic is never used as a sink topic.",
        ),
        (
            [part("0", ["t"]), part("1")],
            StreamsInvalidTopology,
            "No source topics found for subtopology 1",
        ),
        ([part("0", ["t"], copartition=[((1,), ())])], UnknownServerError, "has source 1 of 1"),
        ([part("0", ["t"], copartition=[((-1,), ())])], UnknownServerError, "has source -1 of 1"),
        (
            [part("0", ["t"], sinks=["r"]), part("1", repartition=[internal("r", -1)])],
            UnknownServerError,
            "Number of partitions must be at least 1.",
        ),
        (
            [part("0", ["t"], changelogs=[internal("c"), internal("c")])],
            UnknownServerError,
            "the same name",
        ),
        ([part("0", ["t"]), part("0", ["t"])], UnknownServerError, "the same id"),
    ],
)
def test_invalid_topology_is_refused(
    parts: list[Subtopology], error: type[KafkaError], sentence: str
) -> None:
    with pytest.raises(error) as refused:
        configure(*parts, t=3)

    assert error is type(refused.value)
    assert sentence in str(refused.value)


def test_negative_topology_epoch_is_refused() -> None:
    with pytest.raises(UnknownServerError):
        topology_of(topology(part("0", ["t"]), epoch=-1))


def test_topologies_are_equal_in_any_order() -> None:
    one, other = part("0", ["t"]), part("1", ["u"])

    assert topology_of(topology(one, other)) == topology_of(topology(other, one))
    assert topology_of(topology(one)) != topology_of(topology(other))
    assert topology_of(topology(one)) != topology_of(topology(one, epoch=1))
    assert topology_of(topology(one)) != "topology"
