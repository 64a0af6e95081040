"""
From prepared to completed: every partition of a transaction is told how it ends.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from barnabas.protocol.errors import (
    InvalidProducerEpoch,
    KafkaError,
    TransactionCoordinatorFenced,
)
from barnabas.server.transactions.ending import complete
from barnabas.server.transactions.markers import MarkerWriter
from barnabas.server.transactions.shard import TransactionShard
from barnabas.server.transactions.transaction import Transaction
from barnabas.storage.state_files.file_names import TopicPartition

if TYPE_CHECKING:
    from barnabas.server.clock import ServerClock
    from barnabas.server.scheduling.background import Background

logger = logging.getLogger(__name__)

RETRY_SECONDS: Final = 1.0
"""
How long to wait before a partition that could not take its marker is told again.
"""


class Completion:
    """
    Completes prepared transactions.

    Invariants:

    1. A prepared transaction has its markers written, however often that is tried, unless a later
       producer or coordinator has taken over.
    2. Its id stays claimed until then; if somebody has taken over, until the log is loaded again.
    """

    def __init__(self, markers: MarkerWriter, clock: ServerClock, background: Background) -> None:
        self._markers = markers
        self._clock = clock
        self._background = background

    async def complete_all(self, shard: TransactionShard) -> None:
        """
        Complete what was prepared when the broker stopped, after the log is replayed.
        """
        prepared = {
            transactional_id: transaction
            for transactional_id, transaction in shard.transactions.items()
            if transaction.state.is_prepared
        }
        for transactional_id in prepared:
            shard.claim(transactional_id)
        for transactional_id, transaction in prepared.items():
            logger.info("%s: the end of its transaction goes on", transactional_id)
            await self.complete(shard, transactional_id, transaction)

    async def complete(
        self, shard: TransactionShard, transactional_id: str, prepared: Transaction
    ) -> None:
        """
        Tell the partitions of a prepared transaction, then note that they are told.

        The id is claimed, and released when that is done. What cannot be told now is tried again
        in the background.
        """
        left = await self._tell(shard, transactional_id, prepared, prepared.partitions)
        for where, error in left.items():
            logger.warning("%s: %s-%d has no marker yet: %s", transactional_id, *where, error)
        if left:
            self._background.spawn(
                f"complete {transactional_id}",
                self._go_on(shard, transactional_id, prepared, left),
            )

    async def _go_on(
        self,
        shard: TransactionShard,
        transactional_id: str,
        prepared: Transaction,
        left: Iterable[TopicPartition],
    ) -> None:
        while left and shard.log.is_open:
            await self._clock.sleep(RETRY_SECONDS)
            left = await self._tell(shard, transactional_id, prepared, left)

    async def _tell(
        self,
        shard: TransactionShard,
        transactional_id: str,
        prepared: Transaction,
        partitions: Iterable[TopicPartition],
    ) -> Mapping[TopicPartition, KafkaError]:
        """
        Tell partitions, complete the transaction if that was all, and return what is left and why.
        """
        try:
            left = await self._markers.end(prepared, partitions, coordinator_epoch=shard.epoch)
            if left:
                return left
            await shard.write(transactional_id, complete(prepared, self._clock.now_ms()))
        except (InvalidProducerEpoch, TransactionCoordinatorFenced) as error:
            # Until a restart nobody gets further with the id, as in Kafka.
            logger.info("%s: somebody else ends its transaction: %s", transactional_id, error)
            return {}
        except KafkaError as error:
            # The log of transactions has failed: it is prepared there, and completed after a start.
            logger.error("%s: its transaction cannot be completed: %s", transactional_id, error)
        except BaseException:
            shard.release(transactional_id)
            raise
        shard.release(transactional_id)
        return {}
