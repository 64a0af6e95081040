"""
What share-partitions need of the groups they belong to.

The groups themselves, with their members and records in ``__consumer_offsets``, are elsewhere.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol, TypeAlias
from uuid import UUID

PartitionsByTopic: TypeAlias = Mapping[UUID, Collection[int]]


class ShareGroups(Protocol):
    """
    The share groups of a broker, as the share coordinator and share-partitions use them.

    A group has its partitions in its record of state partitions (Kafka's
    ``ShareGroupStatePartitionMetadata``): some are being initialized, some are initialized, and
    topics are being deleted.
    """

    def initialized(self, group_id: str) -> PartitionsByTopic:
        """
        The partitions of a group whose states are initialized; none if there is no such group.

        Raises:
            KafkaError: the group coordinator does not serve it.
        """

    async def begin_initializing(self, group_id: str, partitions: PartitionsByTopic) -> int:
        """
        Note that states are being initialized, and return the state epoch that they get. A group
        that is missing is made.

        Raises:
            GroupIdNotFound: it is a group of another type.
            NonEmptyGroup: it has members.
            KafkaError: the group coordinator does not serve it, or the record was refused.
        """

    async def end_initializing(self, group_id: str, partitions: PartitionsByTopic) -> None:
        """
        Note that states are initialized.

        Raises:
            KafkaError: as above.
        """

    async def begin_deleting(self, group_id: str, topics: Sequence[UUID]) -> PartitionsByTopic:
        """
        Note that the states of topics are being deleted, and return their partitions. Those are
        left out of which the group has none.

        Raises:
            GroupIdNotFound: there is no such group.
            NonEmptyGroup: it has members.
            KafkaError: as above.
        """

    async def end_deleting(self, group_id: str, topics: Collection[UUID]) -> None:
        """
        Note that the states of topics are deleted.

        Raises:
            KafkaError: as above.
        """
