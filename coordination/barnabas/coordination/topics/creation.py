"""
The records that create topics, or the errors that refuse them.

The functions here are pure, of a request and the image. Rules, codes and the order of the checks
are those of Kafka's ``ReplicationControlManager``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias
from uuid import UUID

from barnabas.coordination.cluster.image import (
    ConfigResourceType,
    MetadataImage,
    Versioned,
    config_record,
)
from barnabas.coordination.cluster.partition_changes import MIN_INSYNC_REPLICAS
from barnabas.coordination.cluster.partition_registration import PartitionRegistration
from barnabas.coordination.cluster.request_limits import check_config_value, check_size
from barnabas.coordination.cluster.topic_names import collision_key, validate_topic_name
from barnabas.coordination.steps import checkpoint
from barnabas.protocol.errors import (
    InvalidConfig,
    InvalidPartitions,
    InvalidReplicaAssignment,
    InvalidReplicationFactor,
    InvalidRequest,
    InvalidTopicException,
    KafkaError,
    PolicyViolation,
    TopicAlreadyExists,
    joined,
    without_frames,
)
from barnabas.protocol.internal_topics import metadata_records as records
from barnabas.protocol.messages.create_topics import CreatableTopic
from barnabas.protocol.structs import fresh, struct
from barnabas.storage.state_files.file_names import LONGEST_FILE_NAME

MAX_PARTITIONS_PER_REQUEST: Final = 10_000

Charge: TypeAlias = Callable[[int], None]
"""
Counts partitions that are going to be created or deleted, or raises ThrottlingQuotaExceeded
(KIP-599).
"""
ManualAssignment = Mapping[int, Sequence[int]]
"""
The brokers of each partition, the first of them its leader.
"""


@struct(kw_only=True)
class CreationRules:
    """
    The defaults and rules for new topics.
    """

    num_partitions: int
    replication_factor: int
    clamp_replication_factor: bool  # to the number of brokers
    directory: UUID  # for the replicas of this node
    check_config: Callable[[Mapping[str, str]], None]  # raises InvalidConfig
    new_id: Callable[[], UUID]


@struct(kw_only=True)
class CreatedTopic:
    """
    A topic that the records of the plan create.
    """

    name: str
    id: UUID
    num_partitions: int
    replication_factor: int
    configs: Mapping[str, str]


@struct(frozen=False)
class CreationPlan:
    """
    The outcome for each name of a request, and the records of those that succeed.
    """

    records: list[Versioned] = fresh(factory=list)
    created: dict[str, CreatedTopic] = fresh(factory=dict)
    errors: dict[str, KafkaError] = fresh(factory=dict)


async def plan_creation(
    image: MetadataImage,
    topics: Sequence[CreatableTopic],
    rules: CreationRules,
    charge: Charge | None = None,
) -> CreationPlan:
    """
    Plan the topics of one request, whose names are distinct.

    Raises:
        PolicyViolation: the request is too large.
    """
    _check_size(topics, rules)
    plan = CreationPlan()
    for topic in topics:
        await checkpoint()
        try:
            await _plan_topic(image, topic, rules, plan, charge)
        except KafkaError as error:
            plan.errors[topic.name] = without_frames(error)
    check_size(plan.records)
    return plan


def _check_size(topics: Sequence[CreatableTopic], rules: CreationRules) -> None:
    def partitions(topic: CreatableTopic) -> int:
        if topic.assignments:
            return len(topic.assignments)
        return rules.num_partitions if topic.num_partitions == -1 else max(0, topic.num_partitions)

    if sum(map(partitions, topics)) > MAX_PARTITIONS_PER_REQUEST:
        raise PolicyViolation("Excessively large number of partitions per request.")


async def _plan_topic(
    image: MetadataImage,
    topic: CreatableTopic,
    rules: CreationRules,
    plan: CreationPlan,
    charge: Charge | None,
) -> None:
    _check_name(image, topic.name)
    configs = _check_configs(topic, rules)
    assignment = _assign(image, topic, rules)
    check_directory_names(topic.name, len(assignment))
    if charge is not None:
        charge(len(assignment))
    topic_id = rules.new_id()
    plan.records.append((records.TopicRecord(name=topic.name, topic_id=topic_id), 0))
    plan.records += _config_records(image, topic.name, configs)
    for index, replicas in assignment.items():
        await checkpoint()
        partition = new_partition(image, replicas, rules.directory)
        plan.records.append(partition.to_record(topic_id, index, image.metadata_version))
    plan.created[topic.name] = CreatedTopic(
        name=topic.name,
        id=topic_id,
        num_partitions=len(assignment),
        replication_factor=len(assignment[0]),
        configs=configs,
    )


def check_directory_names(topic: str, partitions: int) -> None:
    """
    See whether the directories of a topic's partitions can have their names.

    Raises:
        InvalidPartitions: the name of the last one is longer than file systems allow.
    """
    longest = len(f"{topic}-{partitions - 1}")
    if longest > LONGEST_FILE_NAME:
        raise InvalidPartitions(
            f"A topic with a name of {len(topic)} characters cannot have {partitions} partitions:"
            f" the directory of the last one would have a name of {longest} characters, and"
            f" {LONGEST_FILE_NAME} is the limit."
        )


def _check_name(image: MetadataImage, name: str) -> None:
    if name in image.topics_by_name:
        raise TopicAlreadyExists(f"Topic '{name}' already exists.")
    validate_topic_name(name)
    key = collision_key(name)
    if key in image.collisions:
        raise InvalidTopicException(
            f"Topic '{name}' collides with existing topic: {image.collisions[key][0]}"
        )


def _check_configs(topic: CreatableTopic, rules: CreationRules) -> Mapping[str, str]:
    configs: dict[str, str] = {}
    missing = []
    for config in topic.configs:
        if config.value is None:
            missing.append(config.name)
        else:
            configs[config.name] = config.value
    if missing:
        raise InvalidConfig(f"Null value not supported for topic configs: {joined(missing, ',')}")
    for value in configs.values():
        check_config_value(value)
    rules.check_config(configs)
    return configs


def _config_records(
    image: MetadataImage, topic: str, configs: Mapping[str, str]
) -> list[Versioned]:
    made = [
        config_record(ConfigResourceType.TOPIC, topic, name, value)
        for name, value in configs.items()
    ]
    if MIN_INSYNC_REPLICAS in configs and image.elr_enabled:
        # The eligible leader replicas depend on it: they are cleared whenever it is set (KIP-966).
        made.append((records.ClearElrRecord(topic_name=topic), 0))
    return made


def _assign(image: MetadataImage, topic: CreatableTopic, rules: CreationRules) -> ManualAssignment:
    if topic.assignments:
        return _manual_assignment(image, topic)
    if topic.replication_factor < -1 or topic.replication_factor == 0:
        raise InvalidReplicationFactor(
            "Replication factor must be larger than 0, or -1 to use the default value."
        )
    if topic.num_partitions < -1 or topic.num_partitions == 0:
        raise InvalidPartitions("Number of partitions was set to an invalid non-positive value.")
    partitions = rules.num_partitions if topic.num_partitions == -1 else topic.num_partitions
    factor = topic.replication_factor
    if factor == -1:
        factor = rules.replication_factor
    if rules.clamp_replication_factor:
        factor = min(factor, len(image.brokers))
    return dict.fromkeys(range(partitions), place_replicas(image, factor))


def place_replicas(image: MetadataImage, factor: int) -> Sequence[int]:
    """
    The brokers of a new partition; those that can lead it are first.

    Raises:
        InvalidReplicationFactor: there are fewer brokers, or none of them can lead.
    """
    registered = len(image.brokers)
    active = [broker for broker in image.brokers if is_active(image, broker)]
    reason = None
    if factor <= 0:
        reason = f"Invalid replication factor {factor}: the replication factor must be positive."
    elif not active:
        reason = "All brokers are currently fenced, or have all their log directories cordoned."
    elif factor > registered:
        reason = (
            f"The target replication factor of {factor} cannot be reached because only"
            f" {registered} broker(s) are registered or some brokers have all their log"
            " directories cordoned."
        )
    if reason is not None:
        raise InvalidReplicationFactor(
            f"Unable to replicate the partition {factor} time(s): {reason}"
        )
    fenced = [broker for broker in image.brokers if broker not in active]
    return [*active, *fenced][:factor]


def _manual_assignment(image: MetadataImage, topic: CreatableTopic) -> ManualAssignment:
    if topic.replication_factor != -1:
        raise InvalidRequest(
            "A manual partition assignment was specified, but replication factor was not set to -1."
        )
    if topic.num_partitions != -1:
        raise InvalidRequest(
            "A manual partition assignment was specified, but numPartitions was not set to -1."
        )
    assignment: dict[int, Sequence[int]] = {}
    factor: int | None = None
    for given in topic.assignments:
        index, brokers = given.partition_index, given.broker_ids
        if index in assignment:
            raise InvalidReplicaAssignment(
                f"Found multiple manual partition assignments for partition {index}"
            )
        check_manual_assignment(image, index, brokers, factor)
        factor = len(brokers)
        assignment[index] = brokers
    if sorted(assignment) != list(range(len(assignment))):
        raise InvalidReplicaAssignment(
            "partitions should be a consecutive 0-based integer sequence"
        )
    return dict(sorted(assignment.items()))


def check_manual_assignment(
    image: MetadataImage, index: int, brokers: Sequence[int], factor: int | None
) -> None:
    """
    Raises:
        InvalidReplicaAssignment: *brokers* are not distinct registered brokers, their number is not
            that of earlier partitions, or none of them can lead.
    """
    check_registered(image, brokers)
    if factor is not None and len(brokers) != factor:
        raise InvalidReplicaAssignment(
            f"The manual partition assignment includes a partition with {len(brokers)} replica(s),"
            f" but this is not consistent with previous partitions, which have {factor} replica(s)."
        )
    if not any(is_active(image, broker) for broker in brokers):
        raise InvalidReplicaAssignment(
            "All brokers specified in the manual partition assignment for partition"
            f" {index} are fenced or in controlled shutdown."
        )


def check_registered(image: MetadataImage, brokers: Sequence[int]) -> None:
    """
    Raises:
        InvalidReplicaAssignment: *brokers* are not distinct registered brokers.
    """
    start = "The manual partition assignment includes"
    if not brokers:
        raise InvalidReplicaAssignment(f"{start} an empty replica list.")
    previous = None
    for broker in sorted(brokers):
        if broker not in image.brokers:
            raise InvalidReplicaAssignment(
                f"{start} broker {broker}, but no such broker is registered."
            )
        if broker == previous:
            raise InvalidReplicaAssignment(f"{start} the broker {broker} more than once.")
        previous = broker


def new_partition(
    image: MetadataImage, replicas: Sequence[int], directory: UUID
) -> PartitionRegistration:
    """
    A partition with these *replicas*, of which at least one can lead it.
    """
    active = tuple(broker for broker in replicas if is_active(image, broker))
    return PartitionRegistration(
        replicas=tuple(replicas),
        directories=tuple(directory for _ in replicas),
        isr=active,
        leader=active[0],
    )


def is_active(image: MetadataImage, broker_id: int) -> bool:
    """
    Whether a broker can lead a new partition.
    """
    broker = image.brokers[broker_id]
    return not broker.fenced and not broker.in_controlled_shutdown
