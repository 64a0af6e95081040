"""
The group coordinator with partitions in memory, on a clock that is moved by hand.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast
from uuid import UUID

from barnabas.coordination.cluster.topic_names import GROUP_METADATA_TOPIC
from barnabas.coordination.config.groups import GroupConfig
from barnabas.server.config import BrokerConfig
from barnabas.server.groups.coordinator import GroupCoordinator
from barnabas.server.partitions.partition import Partition
from barnabas.server.scheduling.background import Background
from barnabas.server.scheduling.turns import Turns
from barnabas.testing.manual_clock import ManualClock
from tests.support.fragile_log import FragileLog
from tests.support.topic_table import TopicTable

OFFSETS_TOPIC_ID = UUID(int=17)


class World:
    """
    A coordinator with partitions in memory, on a clock that stands still.
    """

    def __init__(
        self, partition_count: int = 1, turns: Turns | None = None, **options: Any
    ) -> None:
        self.clock = ManualClock(1_700_000_000_000)
        self.io = ThreadPoolExecutor(1)
        self.background = Background(self.clock)
        self.turns = turns or Turns()
        self.topics = TopicTable()
        self.shares: Any = None
        self.config = BrokerConfig(offsets_topic_num_partitions=partition_count, **options)
        self.logs = [
            FragileLog(f"{GROUP_METADATA_TOPIC}-{index}", self.clock)
            for index in range(partition_count)
        ]
        self.coordinator = self.new_coordinator()

    def new_coordinator(self) -> GroupCoordinator:
        return GroupCoordinator(
            options=self.config,
            clock=self.clock,
            io=self.io,
            background=self.background,
            turns=self.turns,
            topics=self.topics,
            config_of=lambda group_id: GroupConfig(),
            share_coordinator=lambda: self.shares,
        )

    def partitions(self) -> list[Partition]:
        return [cast(Partition, log.lead(OFFSETS_TOPIC_ID, self.io)) for log in self.logs]

    def start(self) -> None:
        self.coordinator.start()
        self.coordinator.shards.lead(self.partitions(), len(self.partitions()))

    async def restart(self) -> None:
        self.coordinator.stop()
        await self.background.stop()
        self.background = Background(self.clock)
        self.coordinator = self.new_coordinator()
        self.start()
        await self.loaded()

    async def loaded(self) -> None:
        """
        Return when everything is loaded: the one thread that does it has come to what it was asked
        after that.
        """
        await _turns()
        await asyncio.get_running_loop().run_in_executor(self.io, int)
        await _turns()

    @property
    def log(self) -> FragileLog:
        (log,) = self.logs
        return log


async def _turns() -> None:
    """
    Let everything happen that can.
    """
    for _ in range(5):
        await asyncio.sleep(0)
