"""
The states of share-partitions, as the group coordinator begins and ends them.

The share coordinator keeps the states themselves (``barnabas.coordination.share``). A group has a
record of those that there are.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final
from uuid import UUID

from barnabas.coordination.coordinator_runtime.result import CoordinatorResult
from barnabas.coordination.groups.modern.topics import ClusterTopics
from barnabas.coordination.groups.shards import GroupShards
from barnabas.coordination.groups.share.group import ShareGroup
from barnabas.coordination.groups.share.heartbeats import Initialization
from barnabas.coordination.groups.share.records import state_partitions_record
from barnabas.coordination.groups.share.state_partitions import (
    UNKNOWN_TOPIC,
    StatePartitions,
    StatesByTopic,
    TopicStates,
)
from barnabas.coordination.share.keys import SharePartitionKey
from barnabas.coordination.share.persister import Persister
from barnabas.protocol.errors import (
    ErrorCode,
    FencedStateEpoch,
    GroupIdNotFound,
    KafkaError,
)

log = logging.getLogger(__name__)

NO_START: Final = -1
"""
The start offset of a state whose group has not begun yet.
"""


class ShareGroupStates:
    """
    The share groups of this broker, for the share coordinator (implements ``ShareGroups``).

    Used on the event loop's thread only.
    """

    def __init__(
        self,
        shards: GroupShards,
        topics: ClusterTopics,
        coordinator: Callable[[], Persister],
    ) -> None:
        """
        Args:
            coordinator: returns the share coordinator, which is made with its first use.
        """
        self._shards = shards
        self._topics = topics
        self._coordinator = coordinator

    # As others see them

    def initialized(self, group_id: str) -> Mapping[UUID, Collection[int]]:
        """
        The partitions of a group whose states are initialized; none if there is no such group.

        Raises:
            KafkaError: the group coordinator does not serve it.
        """
        group = self._shards.of(group_id).state.groups.get(group_id)
        if not isinstance(group, ShareGroup):
            return {}
        initialized = group.known_states.initialized
        return {topic_id: topic.partitions for topic_id, topic in initialized.items()}

    async def begin_initializing(
        self, group_id: str, partitions: Mapping[UUID, Collection[int]]
    ) -> int:
        """
        Note that states are being initialized, and return the state epoch that they get. A group
        that is missing is made.

        Raises:
            GroupIdNotFound: it is a group of another type.
            NonEmptyGroup: it has members.
            KafkaError: the group coordinator does not serve it, or the record was refused.
        """
        shard = self._shards.of(group_id)
        group = shard.state.groups.get(group_id)
        if group is None:
            group = ShareGroup(group_id)
        if not isinstance(group, ShareGroup):
            raise GroupIdNotFound(f"Group {group_id} is not a share group.")
        group.validate_delete()
        if partitions:
            await self._write(group_id, group.known_states.beginning(self._named(partitions)))
        return group.group_epoch

    async def end_initializing(
        self, group_id: str, partitions: Mapping[UUID, Collection[int]]
    ) -> None:
        """
        Note that states are initialized.

        Raises:
            KafkaError: the group coordinator does not serve the group, or the record was refused.
        """
        states = self._states_of(group_id)
        if states is not None:
            await self._write(group_id, states.completed(self._named(partitions)))

    async def begin_deleting(
        self, group_id: str, topics: Sequence[UUID]
    ) -> Mapping[UUID, Collection[int]]:
        """
        Note that the states of topics are being deleted, and return their partitions. Those are
        left out of which the group has none.

        Raises:
            GroupIdNotFound: there is no such group.
            NonEmptyGroup: it has members.
            KafkaError: as above.
        """
        group = self._shards.of(group_id).state.groups.find(group_id, ShareGroup)
        group.validate_delete()
        if group.states is None:
            return {}
        found: dict[UUID, Collection[int]] = {}
        for topic_id in topics:
            if topic_id in group.states.initialized:
                found[topic_id] = group.states.initialized[topic_id].partitions
            elif topic_id in group.states.deleting:  # an earlier deletion has failed
                found[topic_id] = self._all_partitions(topic_id)
        await self._write(group_id, group.states.ending(topics))
        return found

    async def end_deleting(self, group_id: str, topics: Collection[UUID]) -> None:
        """
        Note that the states of topics are deleted.

        Raises:
            KafkaError: as above.
        """
        states = self._states_of(group_id)
        if states is not None:
            await self._write(group_id, states.ended(topics))

    # As the group coordinator changes them

    async def initialize(self, wanted: Initialization) -> None:
        """
        Initialize states that members of a group wait for, and note that; if one of them cannot be,
        all are forgotten, and a later heartbeat tries again.
        """
        group_id, state_epoch, topics = wanted
        coordinator = self._coordinator()
        try:
            for topic_id, topic in topics.items():
                for index in sorted(topic.partitions):
                    key = SharePartitionKey(group_id, topic_id, index)
                    try:
                        await coordinator.initialize(key, state_epoch, NO_START)
                    except FencedStateEpoch:
                        # A crash of the machine has taken the records of the group, whose epochs
                        # begin again, and not those of the state. The group goes on from there.
                        log.warning("The state of %s is known already", key.coordinator_key)
            await self._change(group_id, lambda states: states.completed(topics))
        except KafkaError as error:
            log.warning("Group %s: states cannot be initialized: %s", group_id, error)
            try:
                await self._change(group_id, lambda states: states.failed(topics))
            except KafkaError as refused:
                log.warning("Group %s: that cannot be noted: %s", group_id, refused)

    async def delete_all(self, group_ids: Iterable[str]) -> dict[str, ErrorCode]:
        """
        Delete the states of those groups that are share groups without members.

        Returns:
            The errors of groups whose states could not be deleted.
        """
        errors = {}
        for group_id in group_ids:
            try:
                await self._delete(group_id)
            except KafkaError as error:
                errors[group_id] = error.code
        return errors

    def has_states(self, group_id: str) -> bool:
        """
        Whether a share group without members has states, which end before it does.
        """
        try:
            group = self._shards.of(group_id).state.groups.get(group_id)
        except KafkaError:
            return False
        return isinstance(group, ShareGroup) and group.is_empty and group.states is not None

    async def _delete(self, group_id: str) -> None:
        states = self._states_of(group_id)
        if states is None:
            return
        wanted: dict[UUID, TopicStates] = {}
        for topic_id, topic in (*states.initializing.items(), *states.initialized.items()):
            known = wanted.get(topic_id)
            partitions = topic.partitions if known is None else topic.partitions | known.partitions
            wanted[topic_id] = TopicStates(topic.name, partitions)
        for topic_id in states.deleting:
            topic_now = self._topics.get_by_id(topic_id)
            if topic_now is not None:
                partitions = frozenset(range(len(topic_now.partitions)))
                wanted[topic_id] = TopicStates(topic_now.name, partitions)
        deleting = {topic_id: topic.name for topic_id, topic in wanted.items()}
        await self._write(group_id, StatePartitions(deleting=deleting))
        coordinator = self._coordinator()
        for topic_id, topic in wanted.items():
            for index in sorted(topic.partitions):
                await coordinator.delete(SharePartitionKey(group_id, topic_id, index))

    def _states_of(self, group_id: str) -> StatePartitions | None:
        group = self._shards.of(group_id).state.groups.get(group_id)
        return group.states if isinstance(group, ShareGroup) else None

    async def _change(
        self, group_id: str, change: Callable[[StatePartitions], StatePartitions]
    ) -> None:
        states = self._states_of(group_id)
        if states is not None:
            await self._write(group_id, change(states))

    async def _write(self, group_id: str, states: StatePartitions) -> None:
        record = state_partitions_record(group_id, states)
        await self._shards.of(group_id).commit(CoordinatorResult(records=[record]))

    def _named(self, partitions: Mapping[UUID, Collection[int]]) -> StatesByTopic:
        return {
            topic_id: TopicStates(self._name(topic_id), frozenset(indexes))
            for topic_id, indexes in partitions.items()
        }

    def _name(self, topic_id: UUID) -> str:
        topic = self._topics.get_by_id(topic_id)
        return UNKNOWN_TOPIC if topic is None else topic.name

    def _all_partitions(self, topic_id: UUID) -> Collection[int]:
        topic = self._topics.get_by_id(topic_id)
        return () if topic is None else range(len(topic.partitions))
