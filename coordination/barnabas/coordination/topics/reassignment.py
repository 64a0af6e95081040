"""
Elections and reassignments of partitions that clients request (KIP-455, KIP-460).

A plan computes records and errors from requests and the image, and changes neither. Rules, codes
and messages are those of Kafka's ``ReplicationControlManager``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from uuid import UUID

from barnabas.coordination.cluster.assignments import ReplicaAssignment
from barnabas.coordination.cluster.image import MetadataImage, Topic, Versioned
from barnabas.coordination.cluster.partition_changes import (
    UNASSIGNED_DIRECTORY,
    Election,
    ElectionDefaults,
    change_partition,
    may_be_unclean,
)
from barnabas.coordination.cluster.partition_registration import (
    MIGRATING_DIRECTORY,
    NO_LEADER,
    PartitionRegistration,
)
from barnabas.coordination.topics.creation import check_registered
from barnabas.protocol.errors import (
    ElectionNotNeeded,
    EligibleLeadersNotAvailable,
    InvalidReplicaAssignment,
    InvalidReplicationFactor,
    KafkaError,
    NoReassignmentInProgress,
    PreferredLeaderNotAvailable,
    UnknownTopicOrPartition,
)


class PartitionChanges:
    """
    The records of a request about partitions, and the partitions that they change.
    """

    def __init__(self, image: MetadataImage, defaults: ElectionDefaults) -> None:
        """
        Args:
            defaults: see ``ElectionDefaults``.
        """
        self.records: list[Versioned] = []
        self.changed: list[tuple[Topic, int]] = []
        self._image = image
        self._defaults = defaults

    def places(self) -> Iterator[tuple[str, list[int]]]:
        """
        All topics with the numbers of their partitions.
        """
        for name, topic in self._image.topics_by_name.items():
            yield name, list(topic.partitions)

    def elect(self, name: str, index: int, election: Election) -> None:
        """
        Elect a leader.

        Raises:
            UnknownTopicOrPartition: the partition does not exist.
            ElectionNotNeeded: the partition has the leader that the election would choose.
            PreferredLeaderNotAvailable, EligibleLeadersNotAvailable: no other replica can lead.
        """
        topic = self._image.topics_by_name.get(name)
        if topic is None:
            raise UnknownTopicOrPartition(f"No such topic as {name}")
        partition = topic.partitions.get(index)
        if partition is None:
            raise UnknownTopicOrPartition(f"No such partition as {name}-{index}")
        wants_first = election is Election.PREFERRED
        has_wanted = partition.leader != NO_LEADER
        if wants_first:
            has_wanted = partition.leader == partition.replicas[0]
        if has_wanted:
            raise ElectionNotNeeded
        if not self._change(topic, index, partition, election=election):
            error: type[KafkaError] = EligibleLeadersNotAvailable
            raise PreferredLeaderNotAvailable if wants_first else error

    def move(
        self, name: str, index: int, replicas: Sequence[int], *, may_change_factor: bool
    ) -> None:
        """
        Reassign a partition to other brokers.

        Raises:
            UnknownTopicOrPartition: the partition does not exist.
            InvalidReplicaAssignment: *replicas* are not distinct registered brokers.
            InvalidReplicationFactor: their number changes without *may_change_factor*.
        """
        topic, partition = self._find(name, index)
        check_registered(self._image, replicas)
        if not may_change_factor:
            _check_factor(partition, len(replicas))
        assignment = ReplicaAssignment.of(partition).to(replicas, self._directory_of)
        self._change(topic, index, partition, election=Election.CLEAN, assignment=assignment)

    def cancel_move(self, name: str, index: int) -> None:
        """
        Cancel the reassignment of a partition.

        Raises:
            UnknownTopicOrPartition: the partition does not exist.
            NoReassignmentInProgress: it is not being reassigned.
            InvalidReplicaAssignment: none of its previous replicas is in sync.
        """
        topic, partition = self._find(name, index)
        if not is_moving(partition):
            raise NoReassignmentInProgress
        assignment = ReplicaAssignment.of(partition)
        unclean = may_be_unclean(self._image, name, self._defaults)
        if assignment.reverts_uncleanly and not unclean:
            raise InvalidReplicaAssignment(
                f"Unable to revert partition assignment for {name}:{index} because it would"
                " require an unclean leader election."
            )
        election = Election.UNCLEAN if unclean else Election.CLEAN
        self._change(topic, index, partition, election=election, assignment=assignment.reverted)

    def _find(self, name: str, index: int) -> tuple[Topic, PartitionRegistration]:
        topic = self._image.topics_by_name.get(name)
        if topic is None:
            raise UnknownTopicOrPartition(f"Unable to find a topic named {name}.")
        partition = topic.partitions.get(index)
        if partition is None:
            raise UnknownTopicOrPartition(f"Unable to find partition {name}:{index}.")
        return topic, partition

    def _change(
        self,
        topic: Topic,
        index: int,
        partition: PartitionRegistration,
        *,
        election: Election,
        assignment: ReplicaAssignment | None = None,
    ) -> bool:
        made = change_partition(
            self._image,
            topic,
            index,
            partition,
            defaults=self._defaults,
            election=election,
            assignment=assignment,
        )
        self.records += made
        if made:
            self.changed.append((topic, index))
        return bool(made)

    def _directory_of(self, broker_id: int) -> UUID:
        """
        The directory of a broker for a new replica, if it is known (``ClusterControlManager``).
        """
        directories = self._image.brokers[broker_id].log_dirs
        if not directories:
            return MIGRATING_DIRECTORY
        return directories[0] if len(directories) == 1 else UNASSIGNED_DIRECTORY


def is_moving(partition: PartitionRegistration) -> bool:
    """
    Whether a partition is being reassigned.
    """
    return bool(partition.adding_replicas or partition.removing_replicas)


def _check_factor(partition: PartitionRegistration, wanted: int) -> None:
    """
    Raises:
        InvalidReplicationFactor: *wanted* is not the number of replicas after the reassignment.
    """
    replicas = {*partition.replicas, *partition.adding_replicas} - {*partition.removing_replicas}
    if len(replicas) != wanted:
        raise InvalidReplicationFactor(
            f"The replication factor is changed from {len(replicas)} to {wanted}"
        )
