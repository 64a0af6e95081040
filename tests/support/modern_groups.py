"""
Common parts of the coordinators of groups that compute assignments themselves.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Self
from uuid import UUID

from barnabas.coordination.groups.modern.records import ModernRecord
from barnabas.coordination.groups.records import CoordinatorRecord, GroupRecord
from barnabas.protocol.internal_topics import group_records as schemas
from tests.support.coordination import GROUP, Coordination


class ModernCoordination(Coordination):
    """
    A coordinator whose members learn what they have from heartbeats.
    """

    kind: ClassVar[str]
    """The prefix of the group's options."""

    @classmethod
    def of(cls, *member_ids: str, partitions: int = 2, **options: Any) -> Self:
        """
        A settled group of these members, which share the partitions of *t*.
        """
        c = cls({"t": partitions}, **options)
        for member_id in member_ids:
            c.arrive(member_id)
        c.settle(*member_ids)
        return c

    @abstractmethod
    def arrive(self, member_id: str) -> Any:
        """
        Join with epoch 0 and subscribe to *t*.
        """

    @abstractmethod
    def beat(self, member_id: str, epoch: int) -> Any:
        """
        Send a heartbeat; a refused one raises the error.
        """

    @abstractmethod
    def go(self, member_id: str) -> Any:
        """
        Leave.
        """

    @abstractmethod
    def report(self, member_id: str) -> Any:
        """
        Send a heartbeat of a member that has followed its assignment and asks for nothing new.
        """

    @property
    def modern(self) -> Any:
        """
        The group.
        """
        return self.state.groups.get(GROUP)

    def topic_id(self, name: str = "t") -> UUID:
        topic = self.topics.get(name)
        assert topic is not None
        return topic.id

    def epoch(self, member_id: str) -> int:
        epoch: int = self.modern.members[member_id].member_epoch
        return epoch

    def settle(self, *member_ids: str, rounds: int = 20) -> None:
        """
        Let members send heartbeats with their assignments until nothing changes.
        """
        for _ in range(rounds):
            before = len(self.log)
            for member_id in member_ids:
                self.report(member_id)
            if len(self.log) == before:
                return
        raise AssertionError(f"{self.state.groups.get(GROUP)!r} does not settle")

    @property
    def last(self) -> list[str]:
        """
        The records of the last batch by their numbers, see ``number_of``.
        """
        return [number_of(record) for record in self.batches[-1]]


def number_of(record: CoordinatorRecord) -> str:
    """
    The number of the record's type, with its member id; ``-`` before that of a tombstone.
    """
    if isinstance(record, GroupRecord):
        return f"{'-' if record.value is None else ''}{schemas.GroupMetadataKey.api.key}"
    assert isinstance(record, ModernRecord), record
    member = f" {record.member_id}" if record.member_id else ""
    return f"{'-' if record.value is None else ''}{record.key.api.key}{member}"
