from __future__ import annotations

from collections.abc import Sequence
from typing import Self
from uuid import UUID

import pytest

from barnabas.coordination.cluster import features, lifecycle
from barnabas.coordination.cluster.image import MetadataImage, Versioned
from barnabas.coordination.cluster.lifecycle import ListenerEndpoint, ThisNode
from barnabas.coordination.cluster.partition_registration import (
    LeaderRecoveryState,
    PartitionRegistration,
)
from barnabas.protocol.internal_topics import metadata_records as records
from tests.support.attributes import assert_has
from tests.support.metadata_records import broker_record, config_record

DEFAULTS = {"min.insync.replicas": "1", "unclean.leader.election.enable": "false"}
DIRECTORY = UUID(int=4711)
TOPIC = UUID(int=10_000)
BOOTSTRAP = [
    (records.FeatureLevelRecord(name=name, feature_level=level), 0)
    for name, level in features.BOOTSTRAP_LEVELS.items()
]


def node(incarnation: int = 1) -> ThisNode:
    return ThisNode(
        node_id=1,
        incarnation_id=UUID(int=incarnation),
        endpoints=[ListenerEndpoint("PLAINTEXT", "127.0.0.1", 9092)],
        log_dirs=[DIRECTORY],
    )


class Cluster:
    def __init__(self, metadata_version: int = 30, elr: int = 1) -> None:
        self.image = MetadataImage()
        self.offset = 0
        self.written: list[str] = []
        self.write([(records.FeatureLevelRecord(name="metadata.version", feature_level=metadata_version), 0)])  # fmt: skip  # noqa: E501 - one fact
        name = "eligible.leader.replicas.version"
        self.write([(records.FeatureLevelRecord(name=name, feature_level=elr), 0)])
        self.written.clear()

    @classmethod
    def with_topic(cls, *facts: int, **more: int) -> Self:
        """
        A cluster that is up and has one topic.
        """
        cluster = cls(*facts, **more)
        cluster.start(1, clean=True)
        cluster.create_topic()
        return cluster

    def write(self, made: Sequence[Versioned]) -> None:
        for record, version in made:
            assert version in record.api.versions
            self.written.append(f"{type(record).__name__} v{version}")
            self.image.apply(record)
            self.offset += 1

    def start(self, incarnation: int, *, clean: bool) -> None:
        me = node(incarnation)
        self.write(lifecycle.controller_registration(self.image, me))
        self.write(lifecycle.broker_shutdown(self.image, 1, clean=clean, defaults=DEFAULTS))
        self.write([lifecycle.broker_registration(self.image, me, self.offset)])
        self.write(lifecycle.no_cordoned_directories(self.image, 1))
        self.write(lifecycle.unfencing(self.image, 1, DEFAULTS))

    def stop(self) -> None:
        self.write(lifecycle.controlled_shutdown(self.image, 1, DEFAULTS))
        self.write(lifecycle.fencing(self.image, 1, DEFAULTS))

    def create_topic(self) -> None:
        partition = PartitionRegistration(
            replicas=(1,), directories=(DIRECTORY,), isr=(1,), leader=1
        )
        self.write([(records.TopicRecord(name="t", topic_id=TOPIC), 0)])
        self.write([partition.to_record(TOPIC, 0, self.image.metadata_version)])

    @property
    def partition(self) -> PartitionRegistration:
        return self.image.topics_by_name["t"].partitions[0]


def test_fresh_metadata_log_begins_with_a_transaction_of_bootstrap_records() -> None:
    made = lifecycle.activation_records(MetadataImage(), BOOTSTRAP, DEFAULTS, in_transaction=False)

    assert [
        (records.BeginTransactionRecord(name="Bootstrap records"), 0),
        *BOOTSTRAP,
        (config_record("min.insync.replicas", "1", "", 4), 0),
        (records.EndTransactionRecord(), 0),
    ] == made


def test_min_insync_replicas_is_not_recorded_without_eligible_leader_replicas() -> None:
    bootstrap = [(records.FeatureLevelRecord(name="metadata.version", feature_level=21), 0)]

    made = lifecycle.activation_records(MetadataImage(), bootstrap, DEFAULTS, in_transaction=False)

    assert not any(isinstance(record, records.ConfigRecord) for record, _ in made)


@pytest.mark.parametrize("fresh", [True, False])
def test_transaction_of_a_dead_controller_is_aborted(fresh: bool) -> None:
    image = MetadataImage() if fresh else Cluster().image

    made = lifecycle.activation_records(image, BOOTSTRAP, DEFAULTS, in_transaction=True)

    assert (records.AbortTransactionRecord(reason="Controller failover"), 0) == made[0]
    assert fresh == (len(made) > 1)


@pytest.mark.parametrize("clean", [True, False])
def test_every_start_raises_the_leader_epoch_by_two(clean: bool) -> None:
    # Once for the leader that left, cleanly or killed, and once for its election.
    cluster = Cluster.with_topic()

    for restart in range(1, 4):
        if clean:
            cluster.stop()
            assert (-1, ()) == (cluster.partition.leader, cluster.partition.isr)
        cluster.start(1 + restart, clean=clean)

        assert 2 * restart == cluster.partition.leader_epoch
        assert (1, (1,)) == (cluster.partition.leader, cluster.partition.isr)
        assert ((), ()) == (
            cluster.partition.eligible_leader_replicas,
            cluster.partition.last_known_elr,
        )


def test_killed_broker_returns_with_recovering_partitions() -> None:
    cluster = Cluster.with_topic()
    cluster.start(2, clean=False)

    assert LeaderRecoveryState.RECOVERING is cluster.partition.leader_recovery_state


def test_broker_killed_during_its_stop_is_not_eligible_any_more() -> None:
    cluster = Cluster.with_topic()
    cluster.write(lifecycle.controlled_shutdown(cluster.image, 1, DEFAULTS))
    cluster.start(2, clean=False)

    assert (1, 2) == (cluster.partition.leader, cluster.partition.leader_epoch)
    assert LeaderRecoveryState.RECOVERING is cluster.partition.leader_recovery_state


@pytest.mark.parametrize(
    ("metadata_version", "registration", "partition"),
    [(7, 1, 0), (8, 2, 0), (16, 2, 0), (17, 3, 1), (22, 3, 1), (23, 3, 2), (29, 3, 2), (30, 4, 2)],
)
def test_older_metadata_version_gets_records_that_it_supports(
    metadata_version: int, registration: int, partition: int
) -> None:
    cluster = Cluster.with_topic(metadata_version, elr=int(metadata_version >= 23))
    cluster.stop()
    cluster.start(2, clean=True)

    assert f"RegisterBrokerRecord v{registration}" in cluster.written
    assert f"PartitionRecord v{partition}" in cluster.written
    assert f"PartitionChangeRecord v{partition}" in cluster.written
    assert (metadata_version >= 15) == ("RegisterControllerRecord v0" in cluster.written)
    assert (metadata_version >= 30) == ("BrokerRegistrationChangeRecord v3" in cluster.written)
    assert (1, 2) == (cluster.partition.leader, cluster.partition.leader_epoch)


def test_replica_in_a_failed_directory_does_not_lead() -> None:
    cluster = Cluster.with_topic()
    cluster.stop()
    other = ThisNode(node_id=1, incarnation_id=UUID(int=9), endpoints=[], log_dirs=[UUID(int=4712)])
    cluster.write([lifecycle.broker_registration(cluster.image, other, cluster.offset)])
    cluster.write(lifecycle.unfencing(cluster.image, 1, DEFAULTS))

    assert -1 == cluster.partition.leader


def test_min_insync_replicas_of_a_topic_applies_to_its_elections() -> None:
    # It takes precedence over that of the cluster, up to the number of replicas.
    cluster = Cluster()
    cluster.start(1, clean=True)
    others = [broker_record(broker, cluster.offset, fenced=False) for broker in (2, 3)]
    cluster.write([(other, 4) for other in others])
    partition = PartitionRegistration(
        replicas=(2, 1, 3), directories=(UUID(int=1),) * 3, isr=(2, 1, 3), leader=2
    )
    cluster.write([(records.TopicRecord(name="t", topic_id=TOPIC), 0)])
    cluster.write([partition.to_record(TOPIC, 0, 30)])
    cluster.write([(config_record("min.insync.replicas", "9"), 0)])

    cluster.write(lifecycle.fencing(cluster.image, 2, DEFAULTS))

    assert_has(cluster.partition, leader=1, isr=(1, 3), eligible_leader_replicas=(2,))
    assert cluster.image.brokers[2].fenced
