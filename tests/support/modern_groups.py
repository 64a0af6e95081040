"""
What partitions of the group coordinator have in common whose groups compute assignments themselves.
"""

from __future__ import annotations

from abc import abstractmethod

from barnabas.protocol.internal_topics import group_records as schemas
from barnabas.server.groups.modern.records import ModernRecord
from barnabas.server.groups.records import GroupRecord, Record
from tests.support.coordination import GROUP, Coordination


class ModernCoordination(Coordination):
    """
    A coordinator whose members learn what they have from heartbeats.
    """

    @abstractmethod
    def report(self, member_id: str) -> object:
        """
        Send a heartbeat of a member that has done as it was told, and wants nothing new.
        """

    def settle(self, *member_ids: str, rounds: int = 20) -> None:
        """
        Let members send heartbeats, each with what it was given, until no heartbeat changes
        anything.
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


def number_of(record: Record) -> str:
    """
    The number of the record's type, with its member id; ``-`` before that of a tombstone.
    """
    if isinstance(record, GroupRecord):
        return f"{'-' if record.value is None else ''}{schemas.GroupMetadataKey.api.key}"
    assert isinstance(record, ModernRecord), record
    member = f" {record.member_id}" if record.member_id else ""
    return f"{'-' if record.value is None else ''}{record.key.api.key}{member}"
