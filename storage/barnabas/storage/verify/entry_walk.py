"""
The entries of an index, one after the other, without those that are out of order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from barnabas.storage.verify.invariants import Invariant
from barnabas.storage.verify.report import FileReport

Entry = TypeVar("Entry")


class EntryWalk(Generic[Entry]):
    """
    Reads entries in step with the batches, so that no index is in memory.

    Args:
        entries: the entries of the file.
        order: the invariant of their order.
        right: the invariant of a single entry.
        expected: what an entry behind the given one must have, or None if it has it.
        text: an entry in words.
    """

    def __init__(
        self,
        entries: Iterator[Entry],
        first: Entry,
        report: FileReport,
        *,
        order: Invariant,
        right: Invariant,
        expected: Callable[[Entry, Entry], str | None],
        text: Callable[[Entry], str],
    ) -> None:
        self._entries = entries
        self._report = report
        self._order = order
        self._right = right
        self._expected = expected
        self._text = text
        self.last = first
        """The last entry that was in order; *first* in front of all entries."""
        self.next: Entry | None = None
        self.number = -1
        """The number of the next entry in the file."""
        self.out_of_order = 0
        self.advance()

    def advance(self) -> None:
        """
        Read the next entry, and report those in front of it that are out of order.
        """
        for entry in self._entries:
            self.number += 1
            expected = self._expected(entry, self.last)
            if expected is None:
                self.last = self.next = entry
                return
            self.out_of_order += 1
            self._report.add(self._order, self._text(entry), expected, entry=self.number)
        self.next = None

    def add(self, expected: str, *, offset: int | None = None) -> None:
        """
        Report the next entry.
        """
        assert self.next is not None, "there is a next entry"
        found = self._text(self.next)
        self._report.add(self._right, found, expected, offset=offset, entry=self.number)
