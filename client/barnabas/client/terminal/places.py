"""
Places in a partition: ``beginning``, ``end``, an offset, a time or a duration.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from barnabas.client.cluster import Cluster
from barnabas.client.errors import BrokerError
from barnabas.client.terminal.connecting import UsageError
from barnabas.protocol.errors import ErrorCode
from barnabas.storage.clock import SystemClock
from barnabas.storage.config.option_values import ConfigError, did_you_mean
from barnabas.storage.config.quantities import duration_ms
from barnabas.storage.explain.units import parse_moment
from barnabas.storage.topic_partition import TopicPartition

PLACES: Final = (
    "beginning, end, an offset, -N for the last N offsets of each partition, a time such as"
    " 2026-01-31T12:00:00Z, or a duration such as 2h for what is at most two hours old"
)

_BEGINNING: Final = ("beginning", "earliest")
_END: Final = ("end", "latest")


def offsets_at(
    cluster: Cluster,
    place: str,
    starts: dict[TopicPartition, int],
    ends: dict[TopicPartition, int],
) -> dict[TopicPartition, int]:
    """
    The offset of *place* in each partition, between its start and its end.

    Args:
        place: one of ``PLACES``. A time means the first record that is not older, or the end.

    Raises:
        UsageError: *place* is none of these.
    """
    if place in _BEGINNING:
        return dict(starts)
    if place in _END:
        return dict(ends)
    if re.fullmatch(r"-[0-9]+", place):
        return {each: max(starts[each], end + int(place)) for each, end in ends.items()}
    if re.fullmatch(r"[0-9]+", place):
        return {each: min(max(starts[each], int(place)), end) for each, end in ends.items()}
    at = cluster.offsets(dict.fromkeys(ends, _time(place)))
    return {each: at[each] if at[each] >= 0 else ends[each] for each in ends}


def _time(place: str) -> int:
    ago = duration_ms(place)
    if ago is not None:
        return max(0, SystemClock().now_ms() - ago)
    try:
        return max(0, parse_moment(place))
    except (ConfigError, OverflowError):
        raise UsageError(f"{place!r} is no place in a partition; write {PLACES}") from None


def existing_partitions(cluster: Cluster, topic: str) -> int:
    """
    How many partitions a topic has.

    Raises:
        BrokerError: the topic does not exist, or this client may not see it.
    """
    found = cluster.existing([topic])
    if topic not in found:
        near = did_you_mean(topic, cluster.topics()).rstrip("?")
        raise BrokerError.of(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"topic {topic}",
            f"It does not exist{near}; barnabas topics create {topic} creates it",
        )
    return found[topic]


def partitions_of(
    cluster: Cluster, topic: str, numbers: Iterable[int] | None
) -> list[TopicPartition]:
    """
    The partitions of a topic with these *numbers*, or all.

    Raises:
        BrokerError: the topic does not exist.
        UsageError: a partition does not exist.
    """
    count = existing_partitions(cluster, topic)
    chosen = range(count) if numbers is None else dict.fromkeys(numbers)
    for number in chosen:
        if not 0 <= number < count:
            raise UsageError(
                f"partition {number} does not exist; topic {topic} has {count},"
                f" numbered from 0 to {count - 1}"
            )
    return [TopicPartition(topic, number) for number in chosen]
