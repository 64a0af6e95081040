"""
The keeper of the states of share-partitions, as share-partitions and share groups use it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

from barnabas.coordination.share.coordinator.state import StateToWrite
from barnabas.coordination.share.keys import SharePartitionKey
from barnabas.protocol.errors import KafkaError
from barnabas.protocol.internal_topics.share_state_records import ShareSnapshotValue

WriteCallback: TypeAlias = Callable[[KafkaError | None], None]


class Persister(Protocol):
    """
    The share coordinator (Kafka's ``Persister``).
    """

    async def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int) -> None:
        """
        Begin to keep the state of a share-partition, or begin it again.

        Args:
            start_offset: -1 if it depends on ``share.auto.offset.reset``.

        Raises:
            KafkaError: see ``ShareCoordinatorState.initialize``, or the state cannot be kept.
        """

    async def summary(self, key: SharePartitionKey) -> ShareSnapshotValue | None:
        """
        The state of a share-partition, None if it was never initialized.

        Raises:
            KafkaError: see ``ShareCoordinatorState.summary``.
        """

    async def delete(self, key: SharePartitionKey) -> None:
        """
        Keep the state of a share-partition no longer.

        Raises:
            KafkaError: see ``ShareCoordinatorState.delete``.
        """

    def write_then(
        self, key: SharePartitionKey, state: StateToWrite, callback: WriteCallback
    ) -> None:
        """
        Add to the state of a share-partition, and tell *callback* when that is committed, or why it
        is not.
        """
