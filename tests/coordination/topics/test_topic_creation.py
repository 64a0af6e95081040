from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from uuid import UUID

import pytest

from barnabas.coordination.cluster.image import MetadataImage
from barnabas.coordination.steps import finished
from barnabas.coordination.topics.creation import CreationPlan, CreationRules, plan_creation
from barnabas.protocol.errors import ErrorCode, InvalidConfig, PolicyViolation
from barnabas.protocol.internal_topics import metadata_records as records
from barnabas.protocol.messages.create_topics import CreatableTopic
from barnabas.protocol.structs import replace
from tests.support.metadata_records import broker_record, config_record, partition_record
from tests.support.topic_requests import creatable

DIRECTORY = UUID(int=4711)


def image(*, existing: Sequence[str] = (), brokers: int = 1) -> MetadataImage:
    """
    A cluster with topics and brokers, numbered from 1, that are all up.
    """
    made = MetadataImage()
    made.apply(records.FeatureLevelRecord(name="metadata.version", feature_level=30))
    made.apply(records.FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1))
    for broker in range(1, brokers + 1):
        made.apply(broker_record(broker, broker, fenced=False))
    for number, name in enumerate(existing):
        made.apply(records.TopicRecord(name=name, topic_id=UUID(int=10_000 + number)))
    return made


def check_config(configs: Mapping[str, str]) -> None:
    if "bad" in configs:
        raise InvalidConfig("Unknown topic config name: bad")


def rules() -> CreationRules:
    ids = count(1)
    return CreationRules(
        num_partitions=2,
        replication_factor=1,
        clamp_replication_factor=False,
        directory=DIRECTORY,
        check_config=check_config,
        new_id=lambda: UUID(int=next(ids)),
    )


def plan(*topics: CreatableTopic, **facts: object) -> CreationPlan:
    made = plan_creation(image(**facts), topics, rules())  # type: ignore[arg-type]  # as given
    return finished(made)


def test_topic_creation_writes_topic_configs_and_partitions_in_order() -> None:
    made = plan(creatable("t", 2, 1, configs={"retention.ms": "5", "cleanup.policy": "compact"}))

    assert made.errors == {}
    topic_id = UUID(int=1)
    expected = [
        (records.TopicRecord(name="t", topic_id=topic_id), 0),
        (config_record("retention.ms", "5"), 0),
        (config_record("cleanup.policy", "compact"), 0),
        (partition_record(topic_id, 0, directories=[DIRECTORY]), 2),
        (partition_record(topic_id, 1, directories=[DIRECTORY]), 2),
    ]
    assert expected == made.records


def test_min_insync_replicas_clears_the_eligible_leaders() -> None:
    # Kafka writes CLEAR_ELR behind the configs of such a topic.
    made = plan(creatable("t", configs={"min.insync.replicas": "2"}))

    assert records.ClearElrRecord(topic_name="t") == made.records[2][0]


def test_minus_1_uses_the_broker_defaults() -> None:
    made = plan(creatable("t", -1, -1))

    assert (2, 1) == (made.created["t"].num_partitions, made.created["t"].replication_factor)


def test_partitions_must_have_equal_numbers_of_replicas() -> None:
    made = plan(creatable("t", -1, -1, [(0, [2, 1]), (1, [1])]), brokers=2)

    assert str(made.errors["t"]) == (
        "The manual partition assignment includes a partition with 1 replica(s), but this is not"
        " consistent with previous partitions, which have 2 replica(s)."
    )


def test_first_replica_of_a_manual_assignment_leads() -> None:
    made = plan(creatable("t", -1, -1, [(1, [1, 2]), (0, [2, 1])]), brokers=2)

    partitions = [
        record for record, _ in made.records if isinstance(record, records.PartitionRecord)
    ]
    assert [(0, 2, [2, 1]), (1, 1, [1, 2])] == [
        (p.partition_id, p.leader, p.replicas) for p in partitions
    ]


def test_invalid_topic_does_not_affect_the_others() -> None:
    made = plan(creatable("good"), creatable("b@d"), creatable("too", 0))

    assert ["good"] == list(made.created)
    assert {"b@d", "too"} == set(made.errors)
    assert 2 == len(made.records)


@pytest.mark.parametrize(("factor", "clamped"), [(3, 1), (1, 1), (-1, 1)])
def test_replication_factor_can_be_clamped(factor: int, clamped: int) -> None:
    made = finished(
        plan_creation(
            image(), [creatable("t", 1, factor)], replace(rules(), clamp_replication_factor=True)
        )
    )

    assert clamped == made.created["t"].replication_factor


def test_topics_cannot_be_created_while_the_broker_is_fenced() -> None:
    cluster = image()
    cluster.apply(records.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=1, fenced=1))

    topics = [creatable("a"), creatable("b", -1, -1, [(0, [1])])]
    made = finished(plan_creation(cluster, topics, rules()))

    assert [ErrorCode.INVALID_REPLICATION_FACTOR, ErrorCode.INVALID_REPLICA_ASSIGNMENT] == [
        error.code for error in made.errors.values()
    ]


@pytest.mark.parametrize(
    ("topics", "message"),
    [
        ([creatable("a", 10_001)], "Excessively large number of partitions per request."),
        (
            [creatable("a", 9_999), creatable("b", -1)],
            "Excessively large number of partitions per request.",
        ),
        ([creatable("a", 10_000)], "Unable to perform excessively large batch operation."),
    ],
)
def test_creation_request_that_is_too_large_is_refused(
    topics: list[CreatableTopic], message: str
) -> None:
    # Kafka's limits are on the partitions and on the records of a request.
    with pytest.raises(PolicyViolation) as caught:
        plan(*topics)

    assert message == str(caught.value)
