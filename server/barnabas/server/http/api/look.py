"""
One look at all topics: their sizes, their traffic, and what somebody should look at.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import TYPE_CHECKING, Final

from barnabas.coordination.steps import checkpoint
from barnabas.protocol.errors import KafkaError
from barnabas.server.http.api.attention import (
    MOST,
    Attention,
    offline_directories,
    offline_partition,
    stuck_transactions,
    uncleanable_partitions,
)
from barnabas.server.http.api.foreseen import losses
from barnabas.server.http.api.rates import Counts
from barnabas.server.partitions.partitions import Traffic

if TYPE_CHECKING:
    from pathlib import Path

    from barnabas.coordination.cluster.image import Topic
    from barnabas.server.forecast.forecasts import Forecasts
    from barnabas.server.partitions.partitions import Partitions
    from barnabas.server.requests.broker_parts import BrokerParts

ALL: Final = ""
"""The name of the counts of all topics, those that were deleted included."""
SEGMENTS_PER_STEP: Final = 256
"""
The size of a log is the sum of those of its segments; everything else of a partition counts as
``PARTITION_COST`` segments.
"""
PARTITION_COST: Final = 16


class TopicLook:
    """
    A topic, and the sums of its partitions.
    """

    __slots__ = ("attention", "offline", "open", "segments", "size", "topic", "traffic")

    def __init__(self, topic: Topic) -> None:
        self.topic = topic
        self.traffic = Traffic()
        self.open = self.offline = self.segments = self.size = 0
        self.attention: list[Attention] = []

    @property
    def counts(self) -> Counts:
        """
        What went in and out.
        """
        return counts_of(self.traffic)


class DirectoryLook:
    """
    The sums of the logs in a log directory.
    """

    __slots__ = ("partitions", "size")

    def __init__(self) -> None:
        self.partitions = self.size = 0


class Look:
    """
    All topics.
    """

    def __init__(self) -> None:
        self.topics: dict[str, TopicLook] = {}
        self.directories: dict[Path, DirectoryLook] = {}
        self.traffic = Traffic()
        self.attention: list[Attention] = []

    def note(self, found: Attention) -> None:
        """
        Note what somebody should look at, if there is room.
        """
        if len(self.attention) < MOST:
            self.attention.append(found)
        look = self.topics.get(found["topic"] or "")
        if look is not None and len(look.attention) < MOST:
            look.attention.append(found)

    @property
    def counts(self) -> Mapping[str, Counts]:
        """
        What went in and out, by topic and of ``ALL``.
        """
        found = {name: look.counts for name, look in self.topics.items()}
        return {**found, ALL: counts_of(self.traffic)}


def counts_of(traffic: Traffic) -> Counts:
    """
    The numbers of *traffic*, which go on.
    """
    return Counts(traffic.records_in, traffic.bytes_in, traffic.bytes_out)


async def look_at(parts: BrokerParts, forecasts: Forecasts | None) -> Look:
    """
    Look at all topics.
    """
    look = Look()
    look.traffic.add_all(parts.partitions.gone)
    for found in offline_directories(parts):
        look.note(found)
    await checkpoint()
    cost = 0
    for topic in tuple(parts.topics):
        seen = look.topics[topic.name] = TopicLook(topic)
        for index in tuple(topic.partitions):
            cost += _look_at_partition(look, seen, parts.partitions, index)
            if cost >= SEGMENTS_PER_STEP:
                cost = 0
                await checkpoint()
        look.traffic.add_all(seen.traffic)
    for found in uncleanable_partitions(parts):
        look.note(found)
    for one in chain(stuck_transactions(parts), losses(forecasts)):
        if one is not None:
            look.note(one)
        await checkpoint()
    return look


def _look_at_partition(look: Look, seen: TopicLook, partitions: Partitions, index: int) -> int:
    """
    Count a partition, and return what that costs, in segments.
    """
    name = seen.topic.name
    partition = partitions.get(name, index)
    if partition is None or partition.error is not None:
        seen.offline += 1
        look.note(offline_partition(name, index, error_of(partitions, name, index)))
        return PARTITION_COST
    log = partition.log
    segments = log.segments.number_of_segments
    seen.open += 1
    seen.segments += segments
    seen.size += (size := log.size)
    seen.traffic.add(partition)
    directory = look.directories.get(log.parent_dir)
    if directory is None:
        directory = look.directories[log.parent_dir] = DirectoryLook()
    directory.partitions += 1
    directory.size += size
    return segments + PARTITION_COST


def error_of(partitions: Partitions, topic: str, index: int) -> str:
    """
    Why a partition is not served.
    """
    try:
        error = partitions.expect(topic, index).error
    except KafkaError as failure:
        error = failure
    return "" if error is None else str(error) or error.code.sentence
