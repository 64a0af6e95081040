"""
What was done with a log, and what of it was promised to last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import NamedTuple
from uuid import UUID

from barnabas.protocol.records.control import ControlRecordType
from barnabas.protocol.records.record import SimpleRecord
from barnabas.storage.config.log_config import LogConfig


class Presence(Enum):
    """
    Whether there is a log.
    """

    MAYBE = "somebody was making or deleting it"
    SURELY = "it was made"
    GONE = "it was deleted"


class Entry(NamedTuple):
    """
    A batch that somebody has tried to append.

    ``data`` is what was given to the log, which puts offset and leader epoch into it.
    """

    base_offset: int
    last_offset: int
    data: bytearray
    records: tuple[SimpleRecord, ...]
    producer_id: int = -1
    base_sequence: int = -1
    is_transactional: bool = False
    control: ControlRecordType | None = None


class Aborted(NamedTuple):
    """
    An aborted transaction.
    """

    producer_id: int
    first_offset: int
    last_offset: int


@dataclass(slots=True)
class Transactions:
    """
    What the markers of a log come to.
    """

    open: dict[int, int] = field(default_factory=dict)
    """The first offset of each transaction that nobody has ended, by producer."""
    aborted: list[Aborted] = field(default_factory=list)


@dataclass(slots=True)
class Ledger:
    """
    One log.

    Invariants:

    1. ``entries`` only gets longer, or is another list: a copy of the ledger stays what it was.
    2. What is below ``durable_end``, and not below where the log starts, is never lost, and what is
       below ``acknowledged_end`` only if the machine crashes.
    """

    topic_id: UUID
    config: LogConfig
    presence: Presence = Presence.MAYBE
    entries: list[Entry] = field(default_factory=list)
    acknowledged_end: int = 0
    durable_end: int = 0
    start: int = 0
    """Where the log starts at the latest."""
    durable_start: int = 0
    """Where it starts at the earliest."""
    may_be_cleaned: bool = False
    """Whether a cleaner has been at it, or may have been."""
    leader_epoch: int = -1
    """The highest that it may have had."""

    def copy(self) -> Ledger:
        return replace(self)

    @property
    def key(self) -> object:
        """
        Equal for ledgers that promise the same.
        """
        numbers = (self.acknowledged_end, self.durable_end, self.start, self.durable_start)
        return self.topic_id, self.presence, id(self.entries), numbers, self.may_be_cleaned

    @property
    def end(self) -> int:
        return self.entries[-1].last_offset + 1 if self.entries else 0

    def below(self, end: int) -> list[Entry]:
        """
        The entries up to *end*, which is the end of one of them.
        """
        return [entry for entry in self.entries if entry.last_offset < end]

    def settle(self, kept: list[Entry], end: int) -> None:
        """
        A log was found that has what was *kept* and ends at *end*: that is what it is from now on.
        """
        self.entries = kept
        self.acknowledged_end = end
        self.presence = Presence.SURELY


def transactions_of(entries: Sequence[Entry]) -> Transactions:
    """
    What a broker should make of *entries*.
    """
    found = Transactions()
    for entry in entries:
        if entry.control is not None:
            first = found.open.pop(entry.producer_id, None)
            if entry.control is ControlRecordType.ABORT and first is not None:
                found.aborted.append(Aborted(entry.producer_id, first, entry.last_offset))
        elif entry.is_transactional:
            found.open.setdefault(entry.producer_id, entry.base_offset)
    return found


def last_of_producers(entries: Sequence[Entry]) -> dict[int, Entry]:
    """
    The last batch of each producer that numbers its batches.
    """
    return {entry.producer_id: entry for entry in entries if entry.base_sequence >= 0}


def committed_values(entries: Sequence[Entry], start: int) -> dict[bytes | None, bytes | None]:
    """
    The last value of each key from *start* on, without what was aborted.
    """
    aborted = transactions_of(entries).aborted
    return {
        record.key: record.value
        for entry in entries
        if entry.control is None and not is_aborted(entry.producer_id, entry.base_offset, aborted)
        for offset, record in enumerate(entry.records, entry.base_offset)
        if offset >= start
    }


def is_aborted(producer_id: int, offset: int, aborted: Sequence[Aborted]) -> bool:
    return any(
        txn.producer_id == producer_id and txn.first_offset <= offset <= txn.last_offset
        for txn in aborted
    )


def records_by_offset(entries: Sequence[Entry]) -> Mapping[int, SimpleRecord]:
    return {
        offset: record
        for entry in entries
        for offset, record in enumerate(entry.records, entry.base_offset)
    }
