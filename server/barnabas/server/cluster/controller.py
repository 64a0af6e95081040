"""
The only writer of the cluster's metadata.

A change computes its records from the image, so that changes are serial: a change reads the image,
writes records, and ends when they are applied.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Coroutine, Sequence
from concurrent.futures import Executor
from functools import partial
from typing import Any, Final, TypeVar
from uuid import UUID

from barnabas.coordination.cluster import lifecycle
from barnabas.coordination.cluster.image import MetadataImage, Versioned
from barnabas.coordination.cluster.lifecycle import ThisNode
from barnabas.coordination.cluster.partition_changes import ElectionDefaults
from barnabas.coordination.cluster.record_frames import encode_record
from barnabas.coordination.steps import map_in_turns
from barnabas.protocol.internal_topics.metadata_records import NoOpRecord
from barnabas.server.cluster.metadata_log import MetadataLog
from barnabas.server.scheduling.turns import Turns
from barnabas.storage.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

T = TypeVar("T")

NO_BROKER_EPOCH: Final = -1


class Controller:
    """
    The controller of a cluster of one node.

    Invariants:

    1. Only the controller writes to the metadata log.
    2. A record is applied to the image after it is on the disk.
    3. A change that has begun is finished, also if its request is cancelled.

    Used on the event loop's thread only; syncs and snapshots run in the executor.
    """

    def __init__(
        self, log: MetadataLog, *, defaults: ElectionDefaults, io: Executor, turns: Turns
    ) -> None:
        self.log = log
        self.broker_epoch = NO_BROKER_EPOCH
        self._broker_id = NO_BROKER_EPOCH
        self.defaults = defaults
        """The topic configs for elections where neither topic nor cluster has a value."""
        self._io = io
        self._turns = turns
        self._lock = asyncio.Lock()

    @property
    def image(self) -> MetadataImage:
        return self.log.image

    @property
    def end_offset(self) -> int:
        """
        The offset of the next metadata record.
        """
        return self.log.end_offset

    async def change(self, work: Callable[[], Awaitable[T]]) -> T:
        """
        Run *work* while no other change is in progress, and return its result.
        """

        async def exclusively() -> T:
            async with self._lock:
                return await work()

        return await asyncio.shield(asyncio.ensure_future(exclusively()))

    async def change_by(
        self,
        plan: Callable[[list[Versioned]], Coroutine[Any, Any, T]],
        *,
        validate_only: bool = False,
    ) -> T:
        """
        Take the steps of a plan, and write the records that it makes.

        Args:
            plan: called with the list for its records once no other change is in progress.

        Returns:
            The result of the plan.

        Raises:
            KafkaError: the plan raised it.
            RecordListTooLarge, KafkaStorageError: as ``write``.
        """

        async def change() -> T:
            made: list[Versioned] = []
            result = await self.in_turns(plan(made))
            if not validate_only:
                await self.write(made)
            return result

        return await self.change(change)

    async def write(self, records: Sequence[Versioned], *, atomic: bool = True) -> None:
        """
        Make *records* durable and apply them, as a part of a change.

        Args:
            atomic: whether a crash must keep all of them or none, so that they need one batch.

        Raises:
            RecordListTooLarge: atomic records do not fit into one batch.
            KafkaStorageError: the metadata log cannot be written.
        """
        assert self._lock.locked(), "records are written by changes only"
        if not records:
            return
        values = await self.in_turns(map_in_turns(lambda each: encode_record(*each), records))
        appended = self.log.append(records, values, atomic=atomic)
        await self.run(self.log.flush)
        self.log.commit(appended)
        if self.log.snapshots.is_due():
            await self.run(self.log.prepare_snapshot())

    async def maintain(self) -> None:
        """
        Write a snapshot if one is due, or remove expired ones.
        """

        async def maintain() -> None:
            if self.log.snapshots.is_due():
                await self.run(self.log.prepare_snapshot())
            else:
                await self.run(self.log.snapshots.clean)

        await self.change(maintain)

    async def write_no_op(self) -> None:
        """
        Write an empty record, so that an idle log grows (``metadata.max.idle.interval.ms``).
        """
        await self.change(lambda: self.write([(NoOpRecord(), 0)]))

    async def in_turns(self, steps: Coroutine[Any, Any, T]) -> T:
        """
        Take the *steps* of a plan in turns. The image does not change meanwhile, since changes are
        serial.
        """
        return await self._turns.finish(steps)

    async def run(self, work: Callable[[], T]) -> T:
        """
        Run blocking *work* in the executor.
        """
        return await asyncio.get_running_loop().run_in_executor(self._io, work)

    # The life of this node.

    async def activate(
        self, read_bootstrap: Callable[[], Sequence[Versioned]], *, take_over: bool = False
    ) -> None:
        """
        Lead the quorum in a new epoch, and write the first records of an empty log.

        Args:
            read_bootstrap: returns the first records. Only an empty log needs them: the file of
                another one may be damaged or missing.
            take_over: see ``MetadataLog.lead``.

        Raises:
            CorruptMessage: the log is empty, and the file is damaged.
            KafkaStorageError: the metadata log cannot be written.
        """

        async def activate() -> None:
            await self.run(partial(self.log.lead, take_over=take_over))
            in_transaction = self.log.in_transaction
            bootstrap = await self.run(read_bootstrap) if self.image.is_empty else ()
            await self.write(
                lifecycle.activation_records(
                    self.image, bootstrap, self.defaults, in_transaction=in_transaction
                )
            )

        await self.change(activate)

    async def register(self, node: ThisNode, *, clean_epoch: int = NO_BROKER_EPOCH) -> None:
        """
        Register this node, as controller and as broker.

        Args:
            clean_epoch: the broker epoch of the last clean stop, from the log directories. If it
                differs from that of the last registration, the node was killed since.
        """

        async def register() -> None:
            self._broker_id = node.node_id
            await self.write(lifecycle.controller_registration(self.image, node))
            await self._fence_others()
            last = self.image.brokers.get(node.node_id)
            clean = last is not None and last.broker_epoch == clean_epoch
            if last is not None and not clean:
                logger.debug("Broker %d was not stopped cleanly the last time", node.node_id)
            made = lifecycle.broker_shutdown(
                self.image, node.node_id, clean=clean, defaults=self.defaults
            )
            await self.write(made, atomic=False)
            self.broker_epoch = self.log.end_offset
            await self.write([lifecycle.broker_registration(self.image, node, self.broker_epoch)])
            await self.write(lifecycle.no_cordoned_directories(self.image, node.node_id))

        await self.change(register)

    async def present(self, node: ThisNode, has_log: Callable[[TopicPartition], bool]) -> None:
        """
        Register this node alone, and lead every partition that has a log here, and no other. That
        is for a log whose changes stay in memory.
        """
        from barnabas.coordination.cluster import read_only  # noqa: PLC0415  # few need it

        async def present() -> None:
            self._broker_id = node.node_id
            self.broker_epoch = self.log.end_offset
            await self.write(
                read_only.only_broker(self.image, node, self.broker_epoch), atomic=False
            )
            await self.write(read_only.leaders(self.image, node.node_id, has_log), atomic=False)

        await self.change(present)

    async def _fence_others(self) -> None:
        """
        Fence the brokers of a cluster that was larger: this node leads their partitions.
        """
        for broker_id, broker in list(self.image.brokers.items()):
            if broker_id != self._broker_id and not broker.fenced:
                made = lifecycle.fencing(self.image, broker_id, self.defaults)
                await self.write(made, atomic=False)

    async def unfence(self) -> None:
        """
        Lead the partitions that this node can lead.
        """

        async def unfence() -> None:
            made = lifecycle.unfencing(self.image, self._broker_id, self.defaults)
            await self.write(made, atomic=False)

        await self.change(unfence)

    async def lose_directories(self, online: Collection[UUID]) -> None:
        """
        Resign from the partitions in log directories other than those *online*.
        """

        async def lose() -> None:
            made = lifecycle.failed_directories(self.image, self._broker_id, online, self.defaults)
            await self.write(made, atomic=False)

        await self.change(lose)

    async def stop(self) -> None:
        """
        Resign from all partitions, fence this broker, and close the log. No change can follow.

        Raises:
            KafkaStorageError: the log cannot be written. Its files are closed even so.
        """

        async def stop() -> None:
            try:
                await self._leave()
            finally:
                await self.run(self.log.close)

        await self.change(stop)

    async def _leave(self) -> None:
        broker = self.image.brokers.get(self._broker_id)
        if broker is not None and not broker.fenced:
            made = lifecycle.controlled_shutdown(self.image, self._broker_id, self.defaults)
            await self.write(made, atomic=False)
            await self.write(lifecycle.fencing(self.image, self._broker_id, self.defaults))
