"""
What a test sees of a broker: values of one moment, which do not change with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Segment:
    """
    A segment of a partition.
    """

    topic: str
    partition: int
    base_offset: int
    size: int
    """Bytes of its ``.log`` file."""
    largest_timestamp: int
    """Milliseconds since 1970 UTC, -1 if no record has a timestamp."""
    is_active: bool
    """Whether records are appended to it."""


@dataclass(frozen=True, slots=True)
class Member:
    """
    A member of a consumer group.
    """

    id: str
    client_id: str
    host: str
    partitions: tuple[tuple[str, int], ...]
    """The assigned partitions as topic and number; empty while the group rebalances."""


@dataclass(frozen=True, slots=True)
class Group:
    """
    A consumer group.
    """

    id: str
    state: str
    """The name that Kafka's tools show: Empty, PreparingRebalance, CompletingRebalance, Stable."""
    members: tuple[Member, ...]
    offsets: Mapping[tuple[str, int], int] = field(default_factory=dict)
    """The committed offset of each topic and partition number."""
    lags: Mapping[tuple[str, int], int] = field(default_factory=dict)
    """The records after each committed offset."""

    def committed(self, topic: str, partition: int = 0) -> int | None:
        """
        The committed offset of a partition; None if the group has committed none.
        """
        return self.offsets.get((topic, partition))

    @property
    def lag(self) -> int:
        """
        The records after the committed offsets, in all partitions with one.
        """
        return sum(self.lags.values())
