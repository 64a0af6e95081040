"""
The markers at the end of a transaction, one for each of its partitions.

On one node a marker is an append like any other. The marker in a partition of the offsets topic is
applied by the group coordinator as well.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from barnabas.coordination.cluster.topic_names import GROUP_METADATA_TOPIC
from barnabas.coordination.coordinator_runtime.producer import ProducerIdAndEpoch
from barnabas.coordination.transactions.state import TransactionState
from barnabas.coordination.transactions.transaction import Transaction
from barnabas.protocol.errors import (
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    ErrorCode,
    InvalidProducerEpoch,
    KafkaError,
    NotCoordinator,
    NotLeaderOrFollower,
    TransactionCoordinatorFenced,
    UnknownServerError,
)
from barnabas.protocol.records.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from barnabas.protocol.records.control import ControlRecordType, EndTransactionMarker
from barnabas.storage.producers.append_origin import AppendOrigin
from barnabas.storage.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.coordination.clock import ServerClock
    from barnabas.server.groups.coordinator import GroupCoordinator
    from barnabas.server.partitions.partitions import Partitions
    from barnabas.server.scheduling.turns import Turns

_NOT_READY: Final = (CoordinatorNotAvailable, CoordinatorLoadInProgress, NotCoordinator)


class MarkerWriter:
    """
    Writes markers to partitions of this broker.
    """

    def __init__(
        self, partitions: Partitions, groups: GroupCoordinator, clock: ServerClock, turns: Turns
    ) -> None:
        self._partitions = partitions
        self._groups = groups
        self._clock = clock
        self._turns = turns

    async def end(
        self,
        transaction: Transaction,
        partitions: Iterable[TopicPartition],
        *,
        coordinator_epoch: int,
    ) -> dict[TopicPartition, KafkaError]:
        """
        Write the markers of a prepared transaction.

        Returns:
            The partitions that failed, with their errors; deleted ones are left out.

        Raises:
            InvalidProducerEpoch, TransactionCoordinatorFenced: a later producer or coordinator has
                written to a partition. No more markers are written.
        """
        failed: dict[TopicPartition, KafkaError] = {}
        async for where in self._turns.between(partitions):
            try:
                await self.write(
                    where,
                    producer_id=transaction.producer_id,
                    producer_epoch=transaction.producer_epoch,
                    coordinator_epoch=coordinator_epoch,
                    commit=transaction.state is TransactionState.PREPARE_COMMIT,
                    transaction_version=transaction.client_version,
                )
            except (InvalidProducerEpoch, TransactionCoordinatorFenced):
                raise
            except KafkaError as error:
                if self._partitions.knows(*where):
                    failed[where] = error
        return failed

    async def write(
        self,
        where: TopicPartition,
        *,
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int,
        commit: bool,
        transaction_version: int,
    ) -> None:
        """
        Write one marker; return when it is committed, and applied by the group coordinator.

        Raises:
            KafkaError: it could not be written.
        """
        partition = self._partitions.expect(*where)
        is_offsets = where.topic == GROUP_METADATA_TOPIC
        if is_offsets:
            self._groups.check_loaded(where.partition)
        kind = ControlRecordType.COMMIT if commit else ControlRecordType.ABORT
        marker = EndTransactionMarker(kind, coordinator_epoch).batch(
            self._clock.now_ms(), producer_id=producer_id, producer_epoch=producer_epoch
        )
        info = partition.append(
            memoryview(marker),
            origin=AppendOrigin.COORDINATOR,
            transaction_version=transaction_version,
        )
        if is_offsets:
            self._groups.end_transaction(where.partition, producer_id, committed=commit)
        await partition.committed(info.last_offset + 1)

    async def write_alone(
        self,
        where: TopicPartition,
        *,
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int,
        commit: bool,
        transaction_version: int,
    ) -> ErrorCode:
        """
        Write one marker for somebody else than the coordinator here, and return the error, as a
        coordinator in another broker would know it.
        """
        try:
            await self.write(
                where,
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                coordinator_epoch=coordinator_epoch,
                commit=commit,
                transaction_version=transaction_version,
            )
        except _NOT_READY:
            # As if the partition were elsewhere: a coordinator of transactions does not know these.
            return NotLeaderOrFollower.code
        except KafkaError as error:
            return error.code
        except ValueError:
            return UnknownServerError.code
        return ErrorCode.NONE


def check_somebody(
    producer: ProducerIdAndEpoch, named: Iterable[TopicPartition], partitions: Partitions
) -> None:
    """
    Of nobody's marker no batch can be built, which Kafka does not foresee: the request fails as a
    whole. It comes to that only if there is a partition to write to, and group coordinators build
    batches of their own.

    Raises:
        UnknownServerError: the *producer* is nobody, and one of the partitions *named* is there.
    """
    nobody = producer.producer_id == NO_PRODUCER_ID or producer.producer_epoch == NO_PRODUCER_EPOCH
    if nobody and any(
        where.topic != GROUP_METADATA_TOPIC and partitions.get(*where) is not None
        for where in named
    ):
        raise UnknownServerError("A marker needs a producer id and its epoch")
