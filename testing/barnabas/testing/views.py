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
    A member of a group.
    """

    id: str
    client_id: str
    host: str
    partitions: tuple[tuple[str, int], ...]
    """
    The partitions as topic and number: in a consumer group with those that the member is to give
    up, in a streams group those that its active tasks read. Empty while a classic group rebalances.
    """


@dataclass(frozen=True, slots=True)
class Group:
    """
    A group of any type: classic, consumer, share or streams.
    """

    id: str
    state: str
    """The name that Kafka's tools show, such as Empty, Reconciling or Stable."""
    members: tuple[Member, ...]
    offsets: Mapping[tuple[str, int], int] = field(default_factory=dict)
    """By topic and partition number: committed offsets, and the start offsets of a share group."""
    lags: Mapping[tuple[str, int], int] = field(default_factory=dict)
    """
    The records after each offset, of a share group without those that are done; and all records of
    a partition that a member has and no offset is committed of.
    """

    def committed(self, topic: str, partition: int = 0) -> int | None:
        """
        The committed offset of a partition; None if the group has committed none.
        """
        return self.offsets.get((topic, partition))

    @property
    def lag(self) -> int:
        """
        The sum of the ``lags``.
        """
        return sum(self.lags.values())
