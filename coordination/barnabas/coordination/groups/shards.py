"""
The shards of the group coordinator, for what belongs to groups of several partitions.
"""

from __future__ import annotations

from typing import Any, Protocol

from barnabas.coordination.coordinator_runtime.result import CoordinatorResult
from barnabas.coordination.groups.shard_state import ShardState


class WritableShard(Protocol):
    """
    The groups of one partition, and the way to write their records.
    """

    @property
    def state(self) -> ShardState:
        """
        The groups and offsets.

        Raises:
            CoordinatorLoadInProgress: the log is not replayed yet.
            KafkaError: the partition is not served any more.
        """

    async def commit(self, result: CoordinatorResult[Any]) -> None:
        """
        Append the records of *result*, apply them, and return once they are committed.

        Raises:
            KafkaError: the records were refused, or their commit failed.
        """


class GroupShards(Protocol):
    """
    Finds the shard of a group.
    """

    def of(self, key: str) -> WritableShard:
        """
        The shard of the group with the id *key*, loaded or not.

        Raises:
            CoordinatorNotAvailable: the broker is starting, or stopping.
            NotCoordinator: the partition is not coordinated here, or does not exist.
        """
