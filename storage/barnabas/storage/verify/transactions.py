"""
The transaction index of a segment, against the ABORT markers in the segment.

::

    data of producer 7    data of producer 8    ABORT of 7 at 5     ABORT of 8 at 6
    offsets 0-2           offsets 3-4           entry 7: 0-5, 3     entry 8: 3-6, 7

An entry says where the transaction began, where its marker is, and which offset was stable behind
the marker: where the first transaction began that was still open, or the offset behind it.
"""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.protocol.structs import NamedTuple
from barnabas.storage.errors import CorruptIndex
from barnabas.storage.index.txn_index import AbortedTxn
from barnabas.storage.readonly import ReadOnlySegment
from barnabas.storage.verify import rules
from barnabas.storage.verify.report import FileReport


class AbortMarker(NamedTuple):
    """
    An ABORT marker, and what is known of the transaction that it ends.
    """

    producer_id: int
    offset: int
    first_offset: int | None
    """None if no transaction of the producer is known to have been open."""
    last_stable_offset: int


class TxnIndexCheck:
    """
    Goes along the entries of a transaction index.
    """

    def __init__(self, segment: ReadOnlySegment, report: FileReport, *, live: bool) -> None:
        self._report = report
        self._live = live
        self._unknown = False
        self._entries = self._read(segment)
        self._number = -1
        self._last_offset = segment.base_offset - 1
        self._next: AbortedTxn | None = None
        self._advance()

    def _read(self, segment: ReadOnlySegment) -> Iterator[AbortedTxn]:
        try:
            yield from segment.txn_entries()
        except CorruptIndex as error:
            self._report.add(rules.TXN_INDEX_ENTRY, str(error), "version 0")
            self._unknown = True

    def _advance(self) -> None:
        for entry in self._entries:
            self._number += 1
            if entry.last_offset > self._last_offset:
                self._last_offset = entry.last_offset
                self._next = entry
                return
            self._report.add(
                rules.TXN_INDEX_ORDER,
                f"last offset {entry.last_offset}",
                f"more than {self._last_offset}",
                entry=self._number,
            )
            # Of the marker to which it should belong nothing can be said.
            self._unknown = True
        self._next = None

    def abort(self, marker: AbortMarker, *, exact: bool) -> None:
        """
        There is a marker.

        Args:
            exact: whether all of the log is there, so that every number can be told.
        """
        while (entry := self._next) is not None and entry.last_offset < marker.offset:
            self._no_marker(entry)
            self._advance()
        if entry is None or entry.last_offset != marker.offset:
            if exact and marker.first_offset is not None and not self._unknown:
                self._report.add(
                    rules.TXN_INDEX_COMPLETE,
                    "no entry",
                    f"one for the transaction of producer {marker.producer_id} from offset"
                    f" {marker.first_offset} to {marker.offset}",
                    offset=marker.offset,
                )
            return
        self._compare(entry, marker, exact=exact)
        self._advance()

    def _compare(self, entry: AbortedTxn, marker: AbortMarker, *, exact: bool) -> None:
        expected = entry._replace(producer_id=marker.producer_id)
        if marker.first_offset is not None:
            if exact or entry.first_offset > marker.first_offset:
                expected = expected._replace(first_offset=marker.first_offset)
            if exact:
                expected = expected._replace(last_stable_offset=marker.last_stable_offset)
        if entry.first_offset > entry.last_offset or entry.last_stable_offset > marker.offset + 1:
            # Whatever is known of the log: a transaction ends behind its beginning, and nothing is
            # stable behind what was the end of the log.
            expected = expected._replace(
                first_offset=min(expected.first_offset, entry.last_offset),
                last_stable_offset=min(expected.last_stable_offset, marker.offset + 1),
            )
        if entry != expected:
            self._report.add(
                rules.TXN_INDEX_ENTRY,
                _text(entry),
                _text(expected),
                offset=marker.offset,
                entry=self._number,
            )

    def unknown(self) -> None:
        """
        There are batches that cannot be relied upon; markers may be among them.
        """
        self._unknown = True

    def end(self) -> None:
        """
        There are no more batches.
        """
        while (entry := self._next) is not None:
            if not self._live:
                self._no_marker(entry)
            self._advance()

    def _no_marker(self, entry: AbortedTxn) -> None:
        if not self._unknown:
            self._report.add(
                rules.TXN_INDEX_ENTRY,
                _text(entry),
                f"an ABORT marker at offset {entry.last_offset}",
                offset=entry.last_offset,
                entry=self._number,
            )


def _text(entry: AbortedTxn) -> str:
    return (
        f"producer {entry.producer_id} from {entry.first_offset} to {entry.last_offset},"
        f" stable up to {entry.last_stable_offset}"
    )
