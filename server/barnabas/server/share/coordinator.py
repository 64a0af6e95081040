"""
The share coordinator of a broker: the states of all share-partitions (Kafka
``ShareCoordinatorService``), and the way to it for share-partitions (``Persister``).

In Kafka the leader of a partition asks the share coordinator over the wire. Here both are in one
process, and the records are the same.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Final, TypeAlias
from uuid import UUID

from barnabas.coordination.cluster.topic_names import SHARE_GROUP_STATE_TOPIC
from barnabas.coordination.config.share import ShareCoordinatorOptions
from barnabas.coordination.coordinator_runtime.memory import MemoryBudget
from barnabas.coordination.coordinator_runtime.result import NOTHING
from barnabas.coordination.share.coordinator.state import (
    ShareCoordinatorState,
    StateToWrite,
)
from barnabas.coordination.share.keys import SharePartitionKey
from barnabas.coordination.share.persister import WriteCallback
from barnabas.protocol.compression import CompressionType
from barnabas.protocol.errors import (
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    ErrorCode,
    KafkaError,
    NotCoordinator,
    error_for,
)
from barnabas.protocol.internal_topics.share_state_records import ShareSnapshotValue
from barnabas.server.coordinator_runtime.partition_log import PartitionLog
from barnabas.server.coordinator_runtime.shard import CoordinatorShard, LogFormat
from barnabas.server.coordinator_runtime.shards import Shards

if TYPE_CHECKING:
    from barnabas.coordination.clock import ServerClock
    from barnabas.coordination.cluster.image import Topic
    from barnabas.server.partitions.partition import Partition
    from barnabas.server.partitions.partitions import Partitions
    from barnabas.server.scheduling.background import Background
    from barnabas.server.topics.topics import Topics

logger = logging.getLogger(__name__)

ShareShard: TypeAlias = CoordinatorShard[ShareCoordinatorState]

_FIRST_SEQUENCE: Final = 0
_NOT_READY: Final = (CoordinatorLoadInProgress, CoordinatorNotAvailable, NotCoordinator)
_ATTEMPTS: Final = 5
_FIRST_PAUSE_S: Final = 1.0
"""
Kafka's ``PersisterStateManager`` asks so often for a coordinator that loads, and waits so long
before the second time; then twice as long.
"""


class ShareCoordinator:
    """
    The states of all share-partitions.

    Invariants:

    1. The topic exists once a state was to be initialized.
    2. An answer that depends on a record leaves after that is committed.

    Used on the event loop's thread only.
    """

    def __init__(
        self,
        *,
        options: ShareCoordinatorOptions,
        clock: ServerClock,
        io: Executor,
        background: Background,
        topics: Topics,
        memory: MemoryBudget,
    ) -> None:
        """
        Args:
            memory: the budget of all states.
        """
        self._options = options
        self._clock = clock
        self._background = background
        self._topics = topics
        self._io = io
        self._memory = memory
        self._pruned: dict[int, int] = {}  # by shard, the offset up to which it was done
        self.shards: Shards[ShareShard] = Shards(
            SHARE_GROUP_STATE_TOPIC,
            options.share_coordinator_state_topic_num_partitions,
            make=self._new_shard,
            background=background,
        )

    def _new_shard(self, partition: Partition) -> ShareShard:
        options = self._options
        codec = options.share_coordinator_state_topic_compression_codec
        return CoordinatorShard(
            PartitionLog(partition, self._io),
            log_format=LogFormat(
                base_sequence=_FIRST_SEQUENCE,
                load_buffer_bytes=options.share_coordinator_load_buffer_size,
                compression=CompressionType.of(codec),
                is_compacted=False,
            ),
            clock=self._clock,
            make_state=lambda timers: ShareCoordinatorState(
                self._exists,
                updates_per_snapshot=(
                    options.share_coordinator_snapshot_update_records_per_snapshot
                ),
                memory=self._memory,
            ),
        )

    def _exists(self, topic_id: UUID, partition: int) -> bool:
        topic = self._topics.get_by_id(topic_id)
        return topic is not None and partition in topic.partitions

    def follow(self, partitions: Partitions) -> None:
        """
        Keep the states in the partitions of the topic, as far as they exist, now and later.
        """
        self.shards.follow(self._topics, partitions)
        self._topics.on_topics_deleted.append(self._forget_topics)

    def start(self) -> None:
        """
        Take requests, write new snapshots of old states, and delete records that no state needs.
        """
        self.shards.start()
        options = self._options
        prune_ms = options.share_coordinator_state_topic_prune_interval_ms
        cold_ms = options.share_coordinator_cold_partition_snapshot_interval_ms
        self._background.every("share-state-prune", prune_ms / 1000, self.prune)
        self._background.every("share-state-snapshots", cold_ms / 1000, self.snapshot_cold)

    def stop(self) -> None:
        """
        Take no more requests.
        """
        self.shards.stop()

    # Requests

    async def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int) -> None:
        """
        Begin to keep the state of a share-partition, or begin it again.

        Args:
            start_offset: -1 if it depends on ``share.auto.offset.reset``.

        Raises:
            KafkaError: see ``ShareCoordinatorState.initialize``, or the state cannot be kept.
        """
        shard = await self._ready_shard(key)
        now_ms = self._clock.now_ms()
        await shard.commit(shard.state.initialize(key, state_epoch, start_offset, now_ms))

    async def read(self, key: SharePartitionKey, leader_epoch: int) -> ShareSnapshotValue:
        """
        The state of a share-partition, for a leader of that epoch.

        Raises:
            KafkaError: see ``ShareCoordinatorState.read``.
        """
        shard = await self._ready_shard(key)
        result, value = shard.state.read(key, leader_epoch, self._clock.now_ms())
        await shard.commit(result)
        return value

    async def summary(self, key: SharePartitionKey) -> ShareSnapshotValue | None:
        """
        The state of a share-partition, None if it was never initialized.

        Raises:
            KafkaError: see ``ShareCoordinatorState.summary``.
        """
        shard = await self._ready_shard(key)
        summary = shard.state.summary(key)
        await shard.commit(NOTHING)
        return summary

    async def delete(self, key: SharePartitionKey) -> None:
        """
        Keep the state of a share-partition no longer.

        Raises:
            KafkaError: see ``ShareCoordinatorState.delete``.
        """
        shard = await self._ready_shard(key)
        await shard.commit(shard.state.delete(key))

    async def write(self, key: SharePartitionKey, state: StateToWrite) -> None:
        """
        Add to the state of a share-partition.

        Raises:
            KafkaError: see ``ShareCoordinatorState.write``.
        """
        shard = await self._ready_shard(key)
        await shard.commit(shard.state.write(key, state, self._clock.now_ms()))

    def write_then(
        self, key: SharePartitionKey, state: StateToWrite, callback: WriteCallback
    ) -> None:
        """
        Add to the state of a share-partition, and tell *callback* when that is committed, or why it
        is not.
        """
        try:
            shard = self.shards.of(key.coordinator_key)
            result = shard.state.write(key, state, self._clock.now_ms())
        except KafkaError as error:
            callback(error)
            return

        def committed(code: ErrorCode | None) -> None:
            callback(None if code is None else error_for(code)())

        shard.write(result, committed)

    async def _ready_shard(self, key: SharePartitionKey) -> ShareShard:
        """
        The shard of a key, as soon as it takes requests. The topic is created if need be.

        Raises:
            KafkaError: it does not take any.
        """
        self.shards.check_active()
        if not self._topics.is_usable(SHARE_GROUP_STATE_TOPIC):
            await self._topics.create_missing([SHARE_GROUP_STATE_TOPIC])
        pause_s = _FIRST_PAUSE_S
        for _ in range(_ATTEMPTS - 1):
            try:
                return self._shard(key)
            except _NOT_READY:
                await self._clock.sleep(pause_s)
                pause_s *= 2
        return self._shard(key)

    def _shard(self, key: SharePartitionKey) -> ShareShard:
        shard = self.shards.of(key.coordinator_key)
        shard.check()
        return shard

    # Upkeep

    def snapshot_cold(self) -> None:
        """
        Write new snapshots of states that have not changed for long, so that older records can go.
        """
        interval_ms = self._options.share_coordinator_cold_partition_snapshot_interval_ms
        for shard in self.shards:
            if shard.log.is_open:
                shard.write(shard.state.snapshot_cold(self._clock.now_ms(), interval_ms))

    async def prune(self) -> None:
        """
        Delete the records that no state needs.
        """
        for shard in self.shards:
            if not shard.log.is_open:
                continue
            offset = shard.state.first_needed_offset
            index = shard.log.index
            if offset <= 0 or self._pruned.get(index) == offset:
                continue
            try:
                await shard.log.delete_records(offset)
            except KafkaError as error:
                logger.warning("%s: records below %d were not deleted: %s", shard, offset, error)
            else:
                self._pruned[index] = offset

    def _forget_topics(self, topics: Sequence[Topic]) -> None:
        topic_ids = [topic.id for topic in topics]
        for shard in self.shards:
            if shard.log.is_open:
                shard.write(shard.state.forget_topics(topic_ids))
