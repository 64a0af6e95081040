"""
The traffic of topics, and the logs of their partitions.

Up to ``barnabas.http.metrics.partitions`` have series of their own, in the order of their names. Of
a topic that does not fit whole, the rest is one series with the partition ``(others)``; all further
topics are one with the topic ``(others)``. So a sum over all series is always right.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.coordination.steps import checkpoint
from barnabas.server.http.metrics import families
from barnabas.server.http.metrics.exposition import Blocks
from barnabas.server.http.metrics.others import OTHERS, SeriesRoom
from barnabas.server.partitions.partitions import Traffic

if TYPE_CHECKING:
    from barnabas.server.partitions.partition import Partition
    from barnabas.server.partitions.partitions import Partitions

SEGMENTS_PER_STEP: Final = 256
"""
The size of a log is the sum of those of its segments, each of which costs a tenth of a microsecond;
everything else of a partition counts as ``PARTITION_COST`` segments.
"""
PARTITION_COST: Final = 16


async def write_logs(partitions: Partitions, places: int, blocks: Blocks) -> None:
    """
    Write the series of all topics and partitions.

    Args:
        places: the most partitions with series of their own.
    """
    writer = _Writer(blocks, SeriesRoom(places))
    writer.all.add_all(partitions.gone)
    names = sorted(partitions.topics)
    await checkpoint()
    for name in names:
        await writer.write_topic(name, partitions.of_topic(name))
    writer.finish()
    blocks.of(families.OFFLINE_PARTITIONS.name).add("", partitions.failed)


class _Logs:
    """
    The logs of several partitions.
    """

    __slots__ = ("end", "is_used", "partitions", "segments", "size", "start")

    def __init__(self) -> None:
        self.size = self.segments = self.start = self.end = self.partitions = 0
        self.is_used = False

    def add(self, partition: Partition) -> int:
        """
        Count the log of *partition* as well; return how many segments it has.
        """
        log = partition.log
        segments = log.segments.number_of_segments
        self.size += log.size
        self.segments += segments
        self.start += log.log_start_offset
        self.end += log.log_end_offset
        self.partitions += 1
        self.is_used = True
        return segments


class _Writer:
    def __init__(self, blocks: Blocks, room: SeriesRoom) -> None:
        self.all = Traffic()
        self._others = Traffic()
        self._other_logs = _Logs()
        self._room = room
        self._size = blocks.of(families.LOG_SIZE.name)
        self._segments = blocks.of(families.LOG_SEGMENTS.name)
        self._start = blocks.of(families.LOG_START.name)
        self._end = blocks.of(families.LOG_END.name)
        self._records_in = blocks.of(families.MESSAGES_IN.name)
        self._bytes_in = blocks.of(families.BYTES_IN.name)
        self._bytes_out = blocks.of(families.BYTES_OUT.name)
        self._produces = blocks.of(families.PRODUCES.name)
        self._failed_produces = blocks.of(families.FAILED_PRODUCES.name)
        self._fetches = blocks.of(families.FETCHES.name)
        self._failed_fetches = blocks.of(families.FAILED_FETCHES.name)
        self._newest = blocks.of(families.NEWEST_OFFSET.name)
        self._oldest = blocks.of(families.OLDEST_OFFSET.name)
        self._replicas = blocks.of(families.REPLICAS.name)
        self._whole = [blocks.of(family.name) for family in families.WHOLE_TOPICS]
        self._sound = [blocks.of(family.name) for family in families.SOUND_TOPICS]
        self._other_partitions = 0
        self._cost = 0

    async def write_topic(self, name: str, partitions: list[Partition]) -> None:
        traffic = Traffic()
        has_place = self._room.places > 0
        rest = _Logs() if has_place else self._other_logs
        for partition in partitions:
            traffic.add(partition)
            if self._room.take():
                segments = self._write_log(name, partition)
            else:
                segments = rest.add(partition)
            self._cost += segments + PARTITION_COST
            if self._cost >= SEGMENTS_PER_STEP:
                self._cost = 0
                await checkpoint()
        self.all.add_all(traffic)
        if not has_place:
            self._others.add_all(traffic)
            self._other_partitions += len(partitions)
            return
        if rest.is_used:
            self._write_sum(f'{{topic="{name}",partition="{OTHERS}"}}', rest)
        self._write_traffic(f'{{topic="{name}"}}', traffic)
        self._write_replicas(f'{{topic="{name}"}}', len(partitions))

    def finish(self) -> None:
        """
        Write the sums of the topics without places, and those of all topics.
        """
        if self._other_logs.is_used:
            self._write_sum(f'{{topic="{OTHERS}",partition="{OTHERS}"}}', self._other_logs)
            self._write_traffic(f'{{topic="{OTHERS}"}}', self._others)
            self._write_replicas(f'{{topic="{OTHERS}"}}', self._other_partitions)
        self._write_traffic("", self.all)

    def _write_log(self, topic: str, partition: Partition) -> int:
        # A legal name of a topic needs no escapes.
        labels = f'{{topic="{topic}",partition="{partition.index}"}}'
        log = partition.log
        segments = log.segments.number_of_segments
        self._size.add(labels, log.size)
        self._segments.add(labels, segments)
        start, end = log.log_start_offset, log.log_end_offset
        self._start.add(labels, start)
        self._oldest.add(labels, start)
        self._end.add(labels, end)
        self._newest.add(labels, end)
        self._replicas.add(labels, 1)
        return segments

    def _write_sum(self, labels: str, found: _Logs) -> None:
        self._size.add(labels, found.size)
        self._segments.add(labels, found.segments)
        self._start.add(labels, found.start)
        self._oldest.add(labels, found.start)
        self._end.add(labels, found.end)
        self._newest.add(labels, found.end)
        self._replicas.add(labels, found.partitions)

    def _write_traffic(self, labels: str, found: Traffic) -> None:
        self._records_in.add(labels, found.records_in)
        self._bytes_in.add(labels, found.bytes_in)
        self._bytes_out.add(labels, found.bytes_out)
        self._produces.add(labels, found.produces)
        self._failed_produces.add(labels, found.failed_produces)
        self._fetches.add(labels, found.fetches)
        self._failed_fetches.add(labels, found.failed_fetches)

    def _write_replicas(self, labels: str, partitions: int) -> None:
        for block in self._whole:
            block.add(labels, partitions)
        for block in self._sound:
            block.add(labels, 0)
