"""
The one writer of the cluster's metadata.

What is to be written follows from what is there, so that changes come one after the other: a change
looks at the image, writes records, and ends when they are applied to it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from concurrent.futures import Executor
from typing import Final, TypeVar
from uuid import UUID

from barnabas.protocol.internal_topics.metadata_records import NoOpRecord
from barnabas.server.cluster import lifecycle
from barnabas.server.cluster.image import MetadataImage, Versioned
from barnabas.server.cluster.lifecycle import ThisNode
from barnabas.server.cluster.metadata_log import MetadataLog
from barnabas.server.cluster.partition_changes import Defaults
from barnabas.server.cluster.record_frames import encode_record
from barnabas.server.turns import Steps, Turns, map_in_steps

logger = logging.getLogger(__name__)

T = TypeVar("T")

MAX_RECORDS_PER_REQUEST: Final = 10_000

NO_BROKER_EPOCH: Final = -1


class Controller:
    """
    The controller of a cluster of one node.

    Invariants:

    1. Nobody else writes to the metadata log.
    2. A record is applied to the image only once it is on the disk.
    3. A change that has begun is finished, whatever becomes of the request that asked for it.

    Belongs to the event loop; only syncs and snapshots run in the executor.
    """

    def __init__(self, log: MetadataLog, *, defaults: Defaults, io: Executor, turns: Turns) -> None:
        self.log = log
        self.broker_epoch = NO_BROKER_EPOCH
        self._broker_id = NO_BROKER_EPOCH
        self._defaults = defaults
        self._io = io
        self._turns = turns
        self._lock = asyncio.Lock()

    @property
    def defaults(self) -> Defaults:
        """
        The topic configs that elections go by where nothing else is said.
        """
        return self._defaults

    @property
    def image(self) -> MetadataImage:
        return self.log.image

    async def change(self, work: Callable[[], Awaitable[T]]) -> T:
        """
        Do *work* while no other change is under way, and return what it does.
        """

        async def exclusively() -> T:
            async with self._lock:
                return await work()

        return await asyncio.shield(asyncio.ensure_future(exclusively()))

    async def write(self, records: Sequence[Versioned], *, atomic: bool = True) -> None:
        """
        Make *records* durable and apply them, as a part of a change.

        Args:
            atomic: whether they must be there all or not at all after a crash, in one batch.

        Raises:
            RecordListTooLarge: they do not fit into a batch.
            KafkaStorageError: the metadata log cannot be written.
        """
        assert self._lock.locked(), "records are written by changes only"
        if not records:
            return
        values = await self.in_turns(map_in_steps(lambda each: encode_record(*each), records))
        appended = self.log.append(records, values, atomic=atomic)
        await self.run(self.log.flush)
        self.log.commit(appended)
        if self.log.snapshots.is_due():
            await self.run(self.log.prepare_snapshot())

    async def maintain(self) -> None:
        """
        Write a snapshot if one is due, and remove what may go; to be called now and then.
        """

        async def maintain() -> None:
            if self.log.snapshots.is_due():
                await self.run(self.log.prepare_snapshot())
            else:
                await self.run(self.log.snapshots.clean)

        await self.change(maintain)

    async def write_no_op(self) -> None:
        """
        Write an empty record, for those who want the log to move while nothing happens
        (``metadata.max.idle.interval.ms``).
        """
        await self.change(lambda: self.write([(NoOpRecord(), 0)]))

    async def in_turns(self, steps: Steps[T]) -> T:
        """
        Let others come between the *steps* of a plan. The image is the same all the while, for
        changes are made one after the other.
        """
        return await self._turns.finish(steps)

    async def run(self, work: Callable[[], T]) -> T:
        """
        Do blocking *work* in the executor.
        """
        return await asyncio.get_running_loop().run_in_executor(self._io, work)

    # The life of this node.

    async def activate(self, read_bootstrap: Callable[[], Sequence[Versioned]]) -> None:
        """
        Lead the quorum in a new epoch, and see to it that a fresh log has its first records.

        Args:
            read_bootstrap: returns those records. A log that has records does not need them, so
                that the file may be damaged or gone.

        Raises:
            CorruptMessage: the log is fresh, and the file is damaged.
            KafkaStorageError: the metadata log cannot be written.
        """

        async def activate() -> None:
            await self.run(self.log.lead)
            in_transaction = self.log.in_transaction
            bootstrap = await self.run(read_bootstrap) if self.image.is_empty else ()
            await self.write(
                lifecycle.activation_records(
                    self.image, bootstrap, self._defaults, in_transaction=in_transaction
                )
            )

        await self.change(activate)

    async def register(self, node: ThisNode, *, clean_epoch: int = NO_BROKER_EPOCH) -> None:
        """
        Register this node, as controller and as broker.

        Args:
            clean_epoch: the broker epoch that the last clean stop left in the log directories. If
                it is not that of the last registration, the node was killed since.
        """

        async def register() -> None:
            self._broker_id = node.node_id
            await self.write(lifecycle.controller_registration(self.image, node))
            await self._fence_others()
            last = self.image.brokers.get(node.node_id)
            clean = last is not None and last.broker_epoch == clean_epoch
            if last is not None and not clean:
                logger.info("Broker %d was not stopped cleanly the last time", node.node_id)
            made = lifecycle.broker_shutdown(
                self.image, node.node_id, clean=clean, defaults=self._defaults
            )
            await self.write(made, atomic=False)
            self.broker_epoch = self.log.end_offset
            await self.write([lifecycle.broker_registration(self.image, node, self.broker_epoch)])
            await self.write(lifecycle.no_cordoned_directories(self.image, node.node_id))

        await self.change(register)

    async def _fence_others(self) -> None:
        """
        Brokers of a cluster that was larger once are gone: this node leads what they led.
        """
        for broker_id, broker in list(self.image.brokers.items()):
            if broker_id != self._broker_id and not broker.fenced:
                made = lifecycle.fencing(self.image, broker_id, self._defaults)
                await self.write(made, atomic=False)

    async def unfence(self) -> None:
        """
        Lead again what this node can lead.
        """

        async def unfence() -> None:
            made = lifecycle.unfencing(self.image, self._broker_id, self._defaults)
            await self.write(made, atomic=False)

        await self.change(unfence)

    async def lose_directories(self, online: Collection[UUID]) -> None:
        """
        Give up what this node has in log directories other than those *online*.
        """

        async def lose() -> None:
            made = lifecycle.failed_directories(self.image, self._broker_id, online, self._defaults)
            await self.write(made, atomic=False)

        await self.change(lose)

    async def stop(self) -> None:
        """
        Give up leadership, fence this broker and close the log. No change can follow.
        """

        async def stop() -> None:
            broker = self.image.brokers.get(self._broker_id)
            if broker is not None and not broker.fenced:
                made = lifecycle.controlled_shutdown(self.image, self._broker_id, self._defaults)
                await self.write(made, atomic=False)
                await self.write(lifecycle.fencing(self.image, self._broker_id, self._defaults))
            await self.run(self.log.close)

        await self.change(stop)
