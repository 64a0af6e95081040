"""
Groups, their committed offsets, and how far they are behind.

As many partitions of groups have series of their own as partitions of topics may. Names of groups
are chosen by clients: one that is longer than ``MOST_OF_A_NAME`` characters, and all groups for
which there is no place, are one series with the group ``(others)``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from barnabas.coordination.steps import checkpoint
from barnabas.server.http.metrics import families
from barnabas.server.http.metrics.exposition import Blocks, escaped
from barnabas.server.http.metrics.lag import Lag, lag_behind
from barnabas.server.http.metrics.lag_times import LagKey, LagTimes, LagTimesOfScrape
from barnabas.server.http.metrics.logs import PARTITION_COST, SEGMENTS_PER_STEP
from barnabas.server.http.metrics.others import OTHERS, SeriesRoom

if TYPE_CHECKING:
    from barnabas.coordination.groups.offsets.offsets import CommittedOffset
    from barnabas.server.requests.broker_parts import BrokerParts
    from barnabas.storage.log.log import Log

MOST_OF_A_NAME: Final = 255
LOOKUP_COST: Final = 64
"""
The cost of the look-up of a time, in segments: see ``logs``.
"""


async def write_groups(parts: BrokerParts, places: int, times: LagTimes, blocks: Blocks) -> None:
    """
    Write the series of all groups. Nothing is created for that, and nothing read from the disk.

    Args:
        places: the most partitions of groups with series of their own.
        times: those of the last scrape.
    """
    coordinators = parts.coordinators
    blocks.of(families.LOADING.name).add("", coordinators.loading)
    coordinator = coordinators.group_coordinator
    writer = _Writer(parts, SeriesRoom(places), times.scrape(), blocks)
    groups = 0
    for shard in () if coordinator is None else coordinator.shards:
        if not shard.log.is_open:
            continue
        # Timers that are due fire when clients ask, not when a state is read.
        state = shard.seen
        groups += len(state.groups)
        for group_id, topics in state.offsets.committed.groups():
            await writer.write_group(group_id, topics)
    blocks.of(families.GROUPS.name).add("", groups)
    blocks.of(families.OFFSETS.name).add("", writer.offsets)
    writer.finish()


class _Writer:
    def __init__(
        self, parts: BrokerParts, room: SeriesRoom, times: LagTimesOfScrape, blocks: Blocks
    ) -> None:
        self.offsets = 0
        self._now_ms = parts.clock.now_ms()
        self._times = times
        self._partitions = parts.partitions
        self._room = room
        self._lag = blocks.of(families.LAG.name)
        self._bytes = blocks.of(families.LAG_BYTES.name)
        self._seconds = blocks.of(families.LAG_SECONDS.name)
        self._offset = blocks.of(families.GROUP_OFFSET.name)
        self._others = Lag(0, 0)
        self._has_others = False
        self._cost = 0

    async def write_group(
        self, group_id: str, topics: Mapping[str, Mapping[int, CommittedOffset]]
    ) -> None:
        name = escaped(group_id) if len(group_id) <= MOST_OF_A_NAME else None
        for topic, offsets in tuple(topics.items()):
            for index, committed in tuple(offsets.items()):
                self.offsets += 1
                self._cost += PARTITION_COST
                if self._cost >= SEGMENTS_PER_STEP:
                    self._cost = 0
                    await checkpoint()
                partition = self._partitions.get(topic, index)
                if partition is None:
                    continue
                self._cost += partition.log.segments.number_of_segments
                lag = lag_behind(partition.log, committed.offset)
                if name is None or not self._room.take():
                    self._others = Lag(
                        self._others.records + lag.records, self._others.size + lag.size
                    )
                    self._has_others = True
                    continue
                labels = f'{{consumergroup="{name}",topic="{topic}",partition="{index}"}}'
                self._lag.add(labels, lag.records)
                self._bytes.add(labels, lag.size)
                seconds = self._seconds_behind((group_id, topic, index), partition.log, lag)
                if seconds is not None:
                    self._seconds.add(labels, seconds)
                self._offset.add(labels, committed.offset)

    def _seconds_behind(self, key: LagKey, log: Log, lag: Lag) -> float | None:
        if not lag.records:
            return 0
        self._cost += LOOKUP_COST
        offset = log.high_watermark - lag.records
        return self._times.seconds(key, log, offset, self._now_ms)

    def finish(self) -> None:
        self._times.finish()
        if self._has_others:
            labels = f'{{consumergroup="{OTHERS}",topic="{OTHERS}",partition="{OTHERS}"}}'
            self._lag.add(labels, self._others.records)
            self._bytes.add(labels, self._others.size)
