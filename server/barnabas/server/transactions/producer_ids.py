"""
Producer ids: numbers that are given out once and never again.

A block of ids is taken by a PRODUCER_IDS record that says where the next block begins, before the
first id of it is used (Kafka ``ProducerIdControlManager``). What is left of a block when the broker
stops is not used any more.
"""

from __future__ import annotations

import asyncio
from typing import Final

from barnabas.protocol.errors import UnknownServerError
from barnabas.protocol.internal_topics.metadata_records import ProducerIdsRecord
from barnabas.server.cluster.controller import Controller

BLOCK_SIZE: Final = 1000
MAX_PRODUCER_ID: Final = 2**63 - 1


class ProducerIds:
    """
    The source of producer ids.

    Invariants:

    1. Every id below ``_end`` is taken in the metadata log, and so durably.
    2. No id is given out twice, neither by this process nor by one before or after it.
    """

    __slots__ = ("_broker_id", "_controller", "_end", "_lock", "_next")

    def __init__(self, controller: Controller, broker_id: int) -> None:
        self._controller = controller
        self._broker_id = broker_id
        self._next = self._end = 0
        self._lock = asyncio.Lock()

    async def generate_producer_id(self) -> int:
        """
        An id that nobody had before.

        Raises:
            KafkaStorageError: the metadata log cannot be written.
            UnknownServerError: all ids are used up.
        """
        # Others may use up a new block before whoever took it goes on.
        while self._next == self._end:
            async with self._lock:
                if self._next == self._end:
                    await self._controller.change(self._take_block)
        producer_id = self._next
        self._next += 1
        return producer_id

    async def _take_block(self) -> None:
        first = max(0, self._controller.image.next_producer_id)
        if first > MAX_PRODUCER_ID - BLOCK_SIZE:
            raise UnknownServerError(f"Exhausted all producer ids: the next block would be {first}")
        record = ProducerIdsRecord(
            broker_id=self._broker_id,
            broker_epoch=self._controller.broker_epoch,
            next_producer_id=first + BLOCK_SIZE,
        )
        await self._controller.write([(record, 0)])
        self._next, self._end = first, first + BLOCK_SIZE
