"""
The share-partitions and share sessions of a broker (Kafka ``SharePartitionManager``).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from concurrent.futures import Executor
from functools import partial
from typing import TYPE_CHECKING, Final
from uuid import UUID

from barnabas.coordination.config.groups import GroupConfigOf
from barnabas.coordination.config.share import SharePartitionOptions
from barnabas.coordination.share.keys import SharePartitionKey
from barnabas.coordination.share.partition import SharePartition, persister_error
from barnabas.coordination.share.sessions import (
    ShareSession,
    ShareSessionKey,
    ShareSessions,
    TopicIdPartition,
)
from barnabas.coordination.share.settings import ShareGroupSettings, ShareSettings
from barnabas.coordination.share.window import NO_OFFSET, ShareWindow
from barnabas.coordination.steps import checkpoint
from barnabas.protocol.errors import KafkaError, UnknownServerError, UnknownTopicOrPartition
from barnabas.server.purgatory import FetchPurgatory
from barnabas.server.share.offset_reset import first_offset, reads_files
from barnabas.server.share.served import ServedSharePartition

if TYPE_CHECKING:
    from barnabas.coordination.clock import ServerClock
    from barnabas.coordination.cluster.image import Topic
    from barnabas.protocol.internal_topics.share_state_records import ShareSnapshotValue
    from barnabas.server.metrics import Metrics
    from barnabas.server.partitions.partition import Partition
    from barnabas.server.scheduling.background import Background
    from barnabas.server.share.coordinator import ShareCoordinator
    from barnabas.server.topics.topics import Topics

logger = logging.getLogger(__name__)

RELEASED_AT_ONCE: Final = 1000
"""
The partitions of a share session that are released in one turn: 100,000 take 100 ms.
"""


class SharePartitionManager:
    """
    What members of share groups fetch and acknowledge.

    Invariants:

    1. A share-partition is in ``_share_partitions`` from the first fetch of it until it fails, its
       topic is deleted, or the last session of its group has ended with a connection.

    Used on the event loop's thread only.
    """

    def __init__(
        self,
        *,
        options: SharePartitionOptions,
        config_of: GroupConfigOf,
        coordinator: ShareCoordinator,
        clock: ServerClock,
        reads: Executor,
        background: Background,
        metrics: Metrics,
    ) -> None:
        """
        Args:
            config_of: returns the configuration of a group.
            reads: threads that read what the page cache lacks.
        """
        self._coordinator = coordinator
        self._settings = ShareSettings(config_of)
        self._clock = clock
        self._reads = reads
        self._background = background
        self._share_partitions: dict[SharePartitionKey, ServedSharePartition] = {}
        self.fetches = FetchPurgatory(clock, reads)
        self.sessions = ShareSessions(
            options.group_share_max_share_sessions,
            ended=self._release,
            emptied=self._forget_group,
        )
        metrics.gauge("share_sessions", "Share sessions.", lambda: len(self.sessions))
        metrics.gauge(
            "share_session_partitions",
            "Partitions in share sessions.",
            lambda: self.sessions.partitions,
        )
        metrics.gauge(
            "share_partitions", "Share-partitions served.", lambda: len(self._share_partitions)
        )

    def follow(self, topics: Topics) -> None:
        """
        Serve no share-partitions of topics that are deleted.
        """
        topics.on_topics_deleted.append(self._forget_topics)

    def stop(self) -> None:
        """
        Answer the fetches that wait, and let sessions be.
        """
        self.sessions.stop()
        self.fetches.wake_all()

    def settings(self, group_id: str) -> ShareGroupSettings:
        """
        The settings of a group, as they are now.
        """
        return self._settings.of(group_id)

    # Share-partitions

    def get(self, group_id: str, topic_id: UUID, index: int) -> ServedSharePartition | None:
        """
        The share-partition; None if no member has fetched it since the broker started.
        """
        return self._share_partitions.get(SharePartitionKey(group_id, topic_id, index))

    def get_or_load(self, group_id: str, partition: Partition) -> ServedSharePartition:
        """
        The share-partition. The first fetch of it loads its state.
        """
        key = SharePartitionKey(group_id, partition.topic_id, partition.index)
        known = self._share_partitions.get(key)
        if known is not None and known.partition is partition and partition.error is None:
            return known
        if known is not None:
            self._drop(known, UnknownTopicOrPartition())
        made = self._share_partitions[key] = SharePartition(
            key,
            partition,
            coordinator=self._coordinator,
            settings=self._settings,
            clock=self._clock,
            fenced=self._drop,
        )
        self._background.spawn(f"load {made}", self._load(made))
        return made

    async def _load(self, share_partition: ServedSharePartition) -> None:
        try:
            state = await self._read(share_partition)
            start_offset = state.start_offset
            if start_offset == NO_OFFSET:
                start_offset = await self._first_offset(share_partition)
            window = ShareWindow(start_offset, state.state_batches)
        except KafkaError as error:
            logger.info("%s cannot be loaded: %s", share_partition, error)
            self._drop(share_partition, error.with_traceback(None))
        except Exception:
            logger.exception("%s cannot be loaded", share_partition)
            self._drop(share_partition, UnknownServerError())
        else:
            if share_partition.error is None:
                share_partition.open(window, state.state_epoch)

    async def _read(self, share_partition: ServedSharePartition) -> ShareSnapshotValue:
        leader_epoch = share_partition.partition.leader_epoch
        try:
            return await self._coordinator.read(share_partition.key, leader_epoch)
        except KafkaError as error:
            raise persister_error(error) from None

    async def _first_offset(self, share_partition: ServedSharePartition) -> int:
        reset = share_partition.settings.auto_offset_reset
        find = partial(first_offset, share_partition.partition, reset, self._clock.now_ms())
        if not reads_files(reset):
            return find()
        return await asyncio.get_running_loop().run_in_executor(self._reads, find)

    def _drop(self, share_partition: ServedSharePartition, error: KafkaError) -> None:
        """
        Serve a share-partition no longer; the next fetch loads it.
        """
        if self._share_partitions.get(share_partition.key) is share_partition:
            del self._share_partitions[share_partition.key]
        share_partition.close(error)

    def _forget_topics(self, topics: Sequence[Topic]) -> None:
        deleted = {topic.id for topic in topics}
        for key, share_partition in tuple(self._share_partitions.items()):
            if key.topic_id in deleted:
                self._drop(share_partition, UnknownTopicOrPartition())

    def _forget_group(self, group_id: str) -> None:
        for key, share_partition in tuple(self._share_partitions.items()):
            if key.group_id == group_id:
                self._drop(share_partition, UnknownTopicOrPartition())

    # Sessions

    def end_session(self, key: ShareSessionKey) -> None:
        """
        End the session of a member, and release what it has acquired.
        """
        session = self.sessions.remove(key)
        if session is not None:
            self._release(session)

    def _release(self, session: ShareSession) -> None:
        """
        Release at once what the members of usual sessions have acquired. A session of very many
        partitions is released in turns.
        """
        partitions = tuple(session.partitions)
        self._release_some(session.key, partitions[:RELEASED_AT_ONCE])
        left = partitions[RELEASED_AT_ONCE:]
        if left:
            self._background.spawn("release share session", self._release_rest(session.key, left))

    async def _release_rest(
        self, key: ShareSessionKey, partitions: Sequence[TopicIdPartition]
    ) -> None:
        for at in range(0, len(partitions), RELEASED_AT_ONCE):
            await checkpoint()
            self._release_some(key, partitions[at : at + RELEASED_AT_ONCE])

    def _release_some(self, key: ShareSessionKey, partitions: Sequence[TopicIdPartition]) -> None:
        for topic_id, index in partitions:
            share_partition = self.get(key.group_id, topic_id, index)
            if share_partition is not None:
                share_partition.release(key.member_id)
