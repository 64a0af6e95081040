"""
The records that add partitions to topics, or the errors that refuse them.

The functions here are pure, of a request and the image. Rules, codes and the order of the checks
are those of Kafka's ``ReplicationControlManager``, except for a request that is too large: Kafka
fails it, and nevertheless adds as many partitions as fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from barnabas.coordination.cluster.image import MetadataImage, Versioned
from barnabas.coordination.cluster.partition_registration import PartitionRegistration
from barnabas.coordination.steps import checkpoint
from barnabas.coordination.topics.creation import (
    MAX_PARTITIONS_PER_REQUEST,
    Charge,
    check_directory_names,
    check_manual_assignment,
    new_partition,
    place_replicas,
)
from barnabas.protocol.errors import (
    InvalidPartitions,
    InvalidReplicaAssignment,
    KafkaError,
    PolicyViolation,
    UnknownTopicOrPartition,
    without_frames,
)
from barnabas.protocol.messages.create_partitions import CreatePartitionsTopic
from barnabas.protocol.structs import fresh, struct


@struct(frozen=False)
class PartitionCreationPlan:
    """
    The outcome for each topic of a request, and the records of those that succeed.
    """

    records: list[Versioned] = fresh(factory=list)
    added: dict[str, list[int]] = fresh(factory=dict)
    errors: dict[str, KafkaError] = fresh(factory=dict)


async def plan_partition_creation(
    image: MetadataImage,
    wanted: Sequence[CreatePartitionsTopic],
    directory: UUID,
    charge: Charge | None = None,
) -> PartitionCreationPlan:
    """
    Plan the topics of one request, whose names are distinct.

    Args:
        directory: for the replicas of this node.
    """
    plan = PartitionCreationPlan()
    for one in wanted:
        await checkpoint()
        try:
            made = _plan_topic(image, one, directory, charge)
            if len(plan.records) + len(made) > MAX_PARTITIONS_PER_REQUEST:
                raise PolicyViolation("Excessively large number of partitions per request.")
        except KafkaError as error:
            plan.errors[one.name] = without_frames(error)
            continue
        plan.added[one.name] = sorted(made)
        topic_id = image.topics_by_name[one.name].id
        plan.records += [
            partition.to_record(topic_id, index, image.metadata_version)
            for index, partition in made.items()
        ]
    return plan


def _plan_topic(
    image: MetadataImage,
    wanted: CreatePartitionsTopic,
    directory: UUID,
    charge: Charge | None,
) -> dict[int, PartitionRegistration]:
    topic = image.topics_by_name.get(wanted.name)
    if topic is None:
        raise UnknownTopicOrPartition
    there = len(topic.partitions)
    _check_count(wanted, there)
    check_directory_names(wanted.name, wanted.count)
    if wanted.count - there > MAX_PARTITIONS_PER_REQUEST:
        raise PolicyViolation("Excessively large number of partitions per request.")
    if charge is not None:
        charge(wanted.count - there)
    indexes = range(there, wanted.count)
    factor = len(topic.partitions[0].replicas)
    if wanted.assignments is None:
        replicas = place_replicas(image, factor)
        return {index: new_partition(image, replicas, directory) for index in indexes}
    made = {}
    for index, assignment in zip(indexes, wanted.assignments, strict=True):
        check_manual_assignment(image, index, assignment.broker_ids, factor)
        made[index] = new_partition(image, assignment.broker_ids, directory)
    return made


def _check_count(wanted: CreatePartitionsTopic, there: int) -> None:
    if wanted.count == there:
        raise InvalidPartitions(f"Topic already has {there} partition(s).")
    if wanted.count < there:
        raise InvalidPartitions(
            f"The topic {wanted.name} currently has {there} partition(s); {wanted.count} would not"
            " be an increase."
        )
    additional = wanted.count - there
    given = additional if wanted.assignments is None else len(wanted.assignments)
    if given != additional:
        raise InvalidReplicaAssignment(
            f"Attempted to add {additional} additional partition(s), but only {given}"
            " assignment(s) were specified."
        )
