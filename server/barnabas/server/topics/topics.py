"""
The topics of the cluster: look-up, creation and deletion.

A topic exists once its records are durable in the metadata log; its logs and partitions are created
before the request is answered, or at the next start if the broker fails in between. A topic is
deleted once its removal is durable; directories that are not renamed by then are strays at the next
start.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence, Set
from concurrent.futures import Executor
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar
from uuid import UUID

from barnabas.coordination.cluster import features
from barnabas.coordination.cluster.image import Topic, Versioned
from barnabas.coordination.cluster.partition_changes import UNASSIGNED_DIRECTORY, offline_replicas
from barnabas.coordination.cluster.partition_registration import NO_LEADER, PartitionRegistration
from barnabas.coordination.cluster.request_limits import check_size
from barnabas.coordination.cluster.topic_names import reason_invalid
from barnabas.coordination.steps import checkpoint, map_in_turns
from barnabas.protocol.errors import (
    KafkaError,
    NotLeaderOrFollower,
    UnknownTopicId,
    without_frames,
)
from barnabas.protocol.internal_topics import metadata_records as records
from barnabas.server.cluster.controller import Controller
from barnabas.server.dynamic_config.topics import TopicConfigs
from barnabas.server.partitions.partition import Partition
from barnabas.server.partitions.partitions import Partitions
from barnabas.storage.config.log_config import LogConfig
from barnabas.storage.log.log import Log
from barnabas.storage.manager.manager import LogManager
from barnabas.storage.topic_partition import TopicPartition
from barnabas.storage.units import counted
from barnabas.storage.uuids import random_uuid

# The modules that plan changes are imported for the first change.
if TYPE_CHECKING:
    from barnabas.coordination.topics.creation import Charge, CreationPlan, CreationRules
    from barnabas.coordination.topics.partition_creation import PartitionCreationPlan
    from barnabas.coordination.topics.reassignment import PartitionChanges
    from barnabas.protocol.messages.create_partitions import CreatePartitionsTopic
    from barnabas.protocol.messages.create_topics import CreatableTopic

logger = logging.getLogger(__name__)

T = TypeVar("T")

EPOCHS_AT_ONCE: Final = 20
"""
The most partitions whose leader epochs are synced before they are served. Those of more partitions
are synced within a second, so that a start or a topic with many partitions need not wait.
"""

TopicListener: TypeAlias = Callable[[T], Awaitable[None] | None]
"""
Called with a topic, or with several, on the event loop. An awaitable that it returns is awaited
before the request is answered.
"""


_Places = Sequence[tuple[Topic, int]]
_Opened = dict[tuple[Topic, int], "Log | KafkaError"]


class Topics:
    """
    Finds, creates and deletes topics.

    Invariants:

    1. The records of every topic are on the disk.
    2. A partition of a topic is open in ``partitions`` as long as the topic exists, unless its log
       could not be opened; it is closed before its log is deleted.
    3. Listeners are called after a topic is created, gets partitions, and is deleted.

    Used on the event loop's thread only.
    """

    def __init__(
        self,
        *,
        node_id: int,
        controller: Controller,
        configs: TopicConfigs,
        log_manager: LogManager,
        partitions: Partitions,
        io: Executor,
    ) -> None:
        self.configs = configs
        self.on_topic_created: list[TopicListener[Topic]] = []
        self.on_partitions_added: list[TopicListener[Topic]] = []
        self.on_topics_deleted: list[TopicListener[Sequence[Topic]]] = []
        self._node_id = node_id
        self._controller = controller
        self._image = controller.image
        self._log_manager = log_manager
        self._partitions = partitions
        self._io = io
        self._beginning: set[str] = set()

    # Look-up

    def get(self, name: str) -> Topic | None:
        """
        The topic with that name.
        """
        return self._image.topics_by_name.get(name)

    def existing(self, names: Iterable[str]) -> Set[str]:
        """
        Return the *names* for which there is a topic.
        """
        return self._image.topics_by_name.keys() & names

    def get_by_id(self, topic_id: UUID) -> Topic | None:
        """
        The topic with that id.
        """
        return self._image.topics_by_id.get(topic_id)

    @property
    def version(self) -> int:
        """
        The end of the metadata log, which grows with each change of a topic.
        """
        return self._controller.end_offset

    def racks(self, name: str, partition: int) -> list[str]:
        """
        The racks of the nodes that have a replica of a partition, of those that have one.
        """
        brokers = self._image.brokers
        replicas = self._image.topics_by_name[name].partitions[partition].replicas
        nodes = (brokers.get(replica) for replica in replicas)
        return [node.rack for node in nodes if node is not None and node.rack is not None]

    def offline_replicas(self, partition: PartitionRegistration) -> list[int]:
        """
        See ``partition_changes.offline_replicas``.
        """
        return offline_replicas(self._image, partition)

    def leader_of(self, partition: PartitionRegistration) -> int:
        """
        The leader that clients can reach: this node, or none.
        """
        return self._node_id if partition.leader == self._node_id else NO_LEADER

    def __contains__(self, name: str) -> bool:
        return name in self._image.topics_by_name

    def is_usable(self, name: str) -> bool:
        """
        Whether the topic exists, its partitions are open, and all listeners have been called.
        """
        return name in self and name not in self._beginning

    def __iter__(self) -> Iterator[Topic]:
        return iter(list(self._image.topics_by_name.values()))

    def __len__(self) -> int:
        return len(self._image.topics_by_name)

    def is_stray(self, topic_id: UUID | None, partition: TopicPartition) -> bool:
        """
        Whether the log in a directory belongs to no replica of this node, such as that of a deleted
        topic (Kafka's ``LogManager.isStrayReplica``).
        """
        topic = None if topic_id is None else self.get_by_id(topic_id)
        if topic is None or topic.name != partition.topic:
            return True
        registration = topic.partitions.get(partition.partition)
        return registration is None or self._node_id not in registration.replicas

    def is_foreign(self, topic_id: UUID | None, partition: TopicPartition) -> bool:
        """
        The same for a log that is only shown: one that was killed before it had an id belongs to
        the topic of its name. A broker that owns the log makes another one.
        """
        topic = self.get(partition.topic) if topic_id is None else None
        return self.is_stray(topic_id if topic is None else topic.id, partition)

    # Changes

    async def create(
        self,
        topics: Sequence[CreatableTopic],
        *,
        validate_only: bool = False,
        charge: Charge | None = None,
    ) -> CreationPlan:
        """
        Create the topics of a request, whose names are distinct. The plan has an error for each
        that is refused; the others can be used when this returns.

        Raises:
            PolicyViolation: the request is too large; no topic was created.
            TooManyOpenFiles: no descriptor is left for the logs; no topic was created.
            KafkaStorageError: the metadata log cannot be written.
        """
        return await self._controller.change(partial(self._create, topics, validate_only, charge))

    async def create_missing(self, names: Iterable[str], charge: Charge | None = None) -> None:
        """
        Create topics automatically, with the default settings.

        Illegal names and existing topics are left out. Failures are logged.
        """
        wanted = await self._controller.in_turns(self._default_topics(names))
        plan = await self._controller.change(partial(self._create, wanted, False, charge))
        await self._controller.in_turns(map_in_turns(self._log_refused, plan.errors.items()))

    async def _default_topics(self, names: Iterable[str]) -> list[CreatableTopic]:
        from barnabas.coordination.topics.default_topics import default_topic

        topics = []
        for name in names:
            await checkpoint()
            if reason_invalid(name) is None:
                topics.append(default_topic(name, self.configs.brokers.static))
        return topics

    def _log_refused(self, refused: tuple[str, KafkaError]) -> None:
        name, error = refused
        if name not in self:
            logger.warning("Topic %s could not be created: %s", name, error)

    async def add_partitions(
        self,
        wanted: Sequence[CreatePartitionsTopic],
        *,
        validate_only: bool = False,
        charge: Charge | None = None,
    ) -> PartitionCreationPlan:
        """
        Add the partitions of a request, whose topics are distinct. The plan has an error for each
        topic that is refused; the other partitions can be used when this returns.

        Raises:
            TooManyOpenFiles: no descriptor is left for the logs; no partition was added.
            KafkaStorageError: the metadata log cannot be written.
        """
        return await self._controller.change(
            partial(self._add_partitions, wanted, validate_only, charge)
        )

    async def delete(
        self, topic_ids: Sequence[UUID], charge: Charge | None = None
    ) -> dict[UUID, KafkaError]:
        """
        Delete topics.

        Returns:
            The errors of the topics that were not deleted.

        Raises:
            KafkaStorageError: the metadata log cannot be written.
        """
        return await self._controller.change(partial(self._delete, topic_ids, charge))

    async def change_partitions(
        self, work: Callable[[PartitionChanges], Coroutine[Any, Any, T]]
    ) -> T:
        """
        Write the records that *work* plans, and return its result.

        Raises:
            PolicyViolation: there are too many records; none was written.
            KafkaStorageError: the metadata log cannot be written.
        """
        from barnabas.coordination.topics.reassignment import PartitionChanges

        async def change() -> T:
            plan = PartitionChanges(self._image, self._controller.defaults)
            result = await self._controller.in_turns(work(plan))
            check_size(plan.records)
            await self._controller.write(plan.records)
            await self._follow(plan.changed)
            return result

        return await self._controller.change(change)

    async def open(self) -> None:
        """
        Open the partitions of all topics, at the start.
        """

        async def open_all() -> None:
            await self._open(_all_of(self), is_new=False)

        await self._controller.change(open_all)

    async def _create(
        self, topics: Sequence[CreatableTopic], validate_only: bool, charge: Charge | None
    ) -> CreationPlan:
        from barnabas.coordination.topics.creation import plan_creation

        steps = plan_creation(self._image, topics, self._rules(), charge)
        plan = await self._controller.in_turns(steps)
        if validate_only:
            return plan
        await self._controller.run(self._log_manager.check_descriptors)
        names = plan.created.keys()
        self._beginning |= names
        try:
            await self._controller.write(plan.records)
            await self._begin([self._image.topics_by_name[name] for name in names])
        finally:
            self._beginning -= names
        return plan

    async def _begin(self, created: Sequence[Topic]) -> None:
        await self._open(_all_of(created), is_new=True)
        for topic in created:
            await _tell(self.on_topic_created, topic, topic.name)
            logger.info(
                "Created topic %s with %s", topic.name, counted(len(topic.partitions), "partition")
            )

    async def _add_partitions(
        self,
        wanted: Sequence[CreatePartitionsTopic],
        validate_only: bool,
        charge: Charge | None,
    ) -> PartitionCreationPlan:
        from barnabas.coordination.topics.partition_creation import plan_partition_creation

        steps = plan_partition_creation(self._image, wanted, self._directory(), charge)
        plan = await self._controller.in_turns(steps)
        if validate_only:
            return plan
        await self._controller.run(self._log_manager.check_descriptors)
        await self._controller.write(plan.records)
        added = [
            (self._image.topics_by_name[name], index)
            for name, indexes in plan.added.items()
            for index in indexes
        ]
        await self._open(added, is_new=True)
        for name, indexes in plan.added.items():
            await _tell(self.on_partitions_added, self._image.topics_by_name[name], name)
            logger.info("Added %s to topic %s", counted(len(indexes), "partition"), name)
        return plan

    async def _delete(
        self, topic_ids: Sequence[UUID], charge: Charge | None
    ) -> dict[UUID, KafkaError]:
        errors: dict[UUID, KafkaError] = {}
        topics = []
        for topic_id in topic_ids:
            topic = self.get_by_id(topic_id)
            if topic is None:
                errors[topic_id] = UnknownTopicId()
                continue
            try:
                if charge is not None:
                    charge(len(topic.partitions))
            except KafkaError as error:
                errors[topic_id] = without_frames(error)
            else:
                topics.append(topic)
        check_size(topics)
        await self._controller.write(
            [(records.RemoveTopicRecord(topic_id=topic.id), 0) for topic in topics]
        )
        for topic in topics:
            self._partitions.remove(topic.name)
        await _tell(self.on_topics_deleted, topics, *(topic.name for topic in topics))
        await self._controller.run(partial(self._delete_logs, topics))
        for topic in topics:
            logger.info("Deleted topic %s", topic.name)
        return errors

    def _rules(self) -> CreationRules:
        from barnabas.coordination.topics.creation import CreationRules

        config = self.configs.brokers.static
        return CreationRules(
            num_partitions=config.num_partitions,
            replication_factor=config.default_replication_factor,
            clamp_replication_factor=config.barnabas_replication_factor_clamp,
            directory=self._directory(),
            check_config=self.configs.check,
            new_id=random_uuid,
        )

    def _directory(self) -> UUID:
        """
        The directory for new replicas of this node, if it is known in advance.
        """
        directories = list(self._log_manager.directories.ids.values())
        # The log manager chooses among several directories when it creates a log.
        return directories[0] if len(directories) == 1 else UNASSIGNED_DIRECTORY

    async def _follow(self, changed: _Places) -> None:
        """
        Open the partitions that this node leads now, and begin their new leader epochs.
        """
        led = []
        for topic, index in dict.fromkeys(changed):
            registration = topic.partitions[index]
            partition = self._partitions.get(topic.name, index)
            if registration.leader != self._node_id:
                continue
            if partition is None:
                led.append((topic, index))
            elif partition.leader_epoch != registration.leader_epoch:
                partition.begin_epoch(registration.leader_epoch)
        await self._open(led, is_new=False)
        # The coordinators load all partitions of their topics again.
        for topic in {topic for topic, _ in led if topic.is_internal}:
            await _tell(self.on_topic_created, topic, topic.name)

    # Logs and partitions

    async def _open(self, wanted: _Places, *, is_new: bool) -> None:
        if not wanted:
            return
        opened = await self._open_logs(wanted, is_new)
        await self._controller.write(self._assignments(opened), atomic=False)
        for (topic, index), log in opened.items():
            if isinstance(log, KafkaError):
                self._partitions.fail(topic.name, topic.id, index, log)
                continue
            self._partitions.add(
                Partition(
                    topic.name,
                    index,
                    topic_id=topic.id,
                    leader_epoch=topic.partitions[index].leader_epoch,
                    log=log,
                    io=self._io,
                )
            )

    async def _open_logs(self, wanted: _Places, is_new: bool) -> _Opened:
        """
        The log of each partition, or why there is none to serve it with.

        Most of the time is spent waiting for the disk, for many logs at once as well as for one.
        If there are many, their epochs are written when they are served already: Kafka too
        writes them one after the other while it serves those that it has come to.
        """
        soon = len(wanted) > EPOCHS_AT_ONCE
        configs = {name: self.configs.log_config(name) for name in {t.name for t, _ in wanted}}

        def open_some(some: Sequence[tuple[Topic, int]]) -> _Opened:
            return {
                (topic, index): self._open_log(
                    topic, index, configs[topic.name], is_new=is_new, soon=soon
                )
                for topic, index in some
            }

        threads = min(self.configs.brokers.static.background_threads, len(wanted))
        if soon and not is_new:
            threads = 1  # All logs are loaded: there is nothing to wait for but other threads.
        if is_new and len(self._log_manager.directories.live) > 1:
            # Each log is created in the directory with the fewest logs, so that the order matters.
            threads = 1
        shares = [wanted[first::threads] for first in range(threads)]
        opened: _Opened = {}
        for some in await asyncio.gather(
            *[self._controller.run(partial(open_some, share)) for share in shares]
        ):
            opened |= some
        return {place: opened[place] for place in wanted}

    def _open_log(
        self, topic: Topic, index: int, config: LogConfig, *, is_new: bool, soon: bool
    ) -> Log | KafkaError:
        registration = topic.partitions[index]
        if registration.leader != self._node_id:
            return NotLeaderOrFollower(f"{topic.name}-{index} has no leader")
        try:
            log = self._log_manager.get_or_create_log(
                TopicPartition(topic.name, index), topic_id=topic.id, config=config, is_new=is_new
            )
            # A leader begins its epoch before the first record of it (KIP-101).
            begin = log.begin_epoch if soon else log.assign_epoch_start_offset
            begin(registration.leader_epoch, log.log_end_offset)
            log.update_high_watermark(log.log_end_offset)
        except KafkaError as error:
            logger.exception("The log of %s-%d cannot be opened", topic.name, index)
            return error
        except ValueError as error:
            # Such as an index too small for one entry, which Kafka takes as a config as well.
            logger.exception("The log of %s-%d cannot be opened", topic.name, index)
            return NotLeaderOrFollower(f"{topic.name}-{index} has no log: {error}")
        return log

    def _assignments(self, opened: _Opened) -> list[Versioned]:
        """
        The records of the directories that the logs are in (KIP-858).
        """
        version = self._image.metadata_version
        if version < features.DIRECTORY_IDS_SINCE:
            return []
        made: list[Versioned] = []
        ids = self._log_manager.directories.ids
        for (topic, index), log in opened.items():
            if isinstance(log, KafkaError):
                continue
            partition = topic.partitions[index]
            place = partition.replicas.index(self._node_id)
            directories = list(partition.directories)
            directories[place] = ids.get(log.parent_dir, directories[place])
            if directories != list(partition.directories):
                change = records.PartitionChangeRecord(
                    partition_id=index, topic_id=topic.id, directories=directories
                )
                made.append((change, features.partition_version(version)))
        return made

    def _delete_logs(self, topics: Sequence[Topic]) -> None:
        partitions = [TopicPartition(t.name, index) for t in topics for index in t.partitions]
        there = [p for p in partitions if self._log_manager.get_log(p) is not None]
        for partition, error in self._log_manager.delete_logs(there).items():
            # The topic is deleted nevertheless; its log is a stray at the next start.
            logger.error("The log of %s could not be deleted", partition, exc_info=error)


def _all_of(topics: Iterable[Topic]) -> _Places:
    return [(topic, index) for topic in topics for index in topic.partitions]


async def _tell(listeners: Iterable[TopicListener[T]], what: T, *names: str) -> None:
    # A listener that is added meanwhile has looked at the existing topics, including this one.
    for listener in tuple(listeners):
        try:
            waiting = listener(what)
            if waiting is not None:
                await waiting
        except Exception:
            # The topic is created or deleted nevertheless, and the other listeners have to know.
            logger.exception("%s failed for topics %s", listener, ", ".join(names))
