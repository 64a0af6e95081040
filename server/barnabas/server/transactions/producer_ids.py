"""
Producer ids, each of which is generated once.

Before the first id of a block is used, a PRODUCER_IDS record takes the block (Kafka's
``ProducerIdControlManager``). The ids of a block that are left at a stop are never used.
"""

from __future__ import annotations

import asyncio
from typing import Final

from barnabas.protocol.errors import UnknownServerError
from barnabas.protocol.internal_topics.metadata_records import ProducerIdsRecord
from barnabas.server.cluster.controller import Controller
from barnabas.storage.units import LONG_MAX

BLOCK_SIZE: Final = 1000


class ProducerIds:
    """
    Generates producer ids.

    Invariants:

    1. All ids below ``_end`` are taken in the metadata log, and so durably.
    2. No id is generated twice, by this process or another one.
    """

    __slots__ = ("_broker_id", "_controller", "_end", "_lock", "_next")

    def __init__(self, controller: Controller, broker_id: int) -> None:
        self._controller = controller
        self._broker_id = broker_id
        self._next = self._end = 0
        self._lock = asyncio.Lock()

    async def generate_producer_id(self) -> int:
        """
        An unused id.

        Raises:
            KafkaStorageError: the metadata log cannot be written.
            UnknownServerError: all ids are used.
        """
        # Other requests may use all of a new block before the one that took it continues.
        while self._next == self._end:
            async with self._lock:
                if self._next == self._end:
                    await self._controller.change(self._take_block)
        producer_id = self._next
        self._next += 1
        return producer_id

    async def _take_block(self) -> None:
        first = max(0, self._controller.image.next_producer_id)
        if first > LONG_MAX - BLOCK_SIZE:
            raise UnknownServerError(f"Exhausted all producer ids: the next block would be {first}")
        record = ProducerIdsRecord(
            broker_id=self._broker_id,
            broker_epoch=self._controller.broker_epoch,
            next_producer_id=first + BLOCK_SIZE,
        )
        await self._controller.write([(record, 0)])
        self._next, self._end = first, first + BLOCK_SIZE
