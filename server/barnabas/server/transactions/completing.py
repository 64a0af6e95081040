"""
The completion of prepared transactions: a marker for each partition, then the complete state.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from barnabas.coordination.transactions.ending import complete
from barnabas.coordination.transactions.transaction import Transaction
from barnabas.protocol.errors import (
    InvalidProducerEpoch,
    KafkaError,
    TransactionCoordinatorFenced,
)
from barnabas.server.transactions.markers import MarkerWriter
from barnabas.server.transactions.shard import TransactionShard
from barnabas.storage.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.coordination.clock import ServerClock
    from barnabas.server.scheduling.background import Background

logger = logging.getLogger(__name__)

RETRY_SECONDS: Final = 1.0
"""
The time between two attempts to write a marker: a failed disk answers at once, and need not be
asked more often.
"""


class Completion:
    """
    Completes prepared transactions.

    Invariants:

    1. The markers of a prepared transaction are written, after any number of attempts, unless a
       later producer or coordinator has taken over.
    2. Its id stays claimed until then; after a takeover, until the log is loaded again.
    """

    def __init__(self, markers: MarkerWriter, clock: ServerClock, background: Background) -> None:
        self._markers = markers
        self._clock = clock
        self._background = background

    async def complete_all(self, shard: TransactionShard) -> None:
        """
        Complete the transactions that are prepared when the log is loaded.
        """
        prepared = {
            transactional_id: transaction
            for transactional_id, transaction in shard.transactions.items()
            if transaction.state.is_prepared
        }
        for transactional_id in prepared:
            shard.claim(transactional_id)
        for transactional_id, transaction in prepared.items():
            logger.info("%s: its transaction is prepared, and is completed", transactional_id)
            await self.complete(shard, transactional_id, transaction)

    async def complete(
        self, shard: TransactionShard, transactional_id: str, prepared: Transaction
    ) -> None:
        """
        Write the markers of a prepared transaction, then its complete state.

        The caller has claimed the id, which is released afterwards. Markers that fail are tried
        again in the background.
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
        Write markers, and complete the transaction if all are written; return the partitions that
        failed, with their errors.
        """
        try:
            left = await self._markers.end(prepared, partitions, coordinator_epoch=shard.epoch)
            if left:
                return left
            await shard.update(transactional_id, complete(prepared, self._clock.now_ms()))
        except (InvalidProducerEpoch, TransactionCoordinatorFenced) as error:
            # As in Kafka the id is claimed until the log is loaded again.
            logger.info("%s: another coordinator ends its transaction: %s", transactional_id, error)
            return {}
        except KafkaError as error:
            # The log has failed with the transaction prepared; the next start completes it.
            logger.error("%s: its transaction cannot be completed: %s", transactional_id, error)
        except BaseException:
            shard.release(transactional_id)
            raise
        shard.release(transactional_id)
        return {}
