"""
The transaction index of a segment, compared with the ABORT markers in the segment.

::

    data of producer 7    data of producer 8    ABORT of 7 at 5     ABORT of 8 at 6
    offsets 0-2           offsets 3-4           entry 7: 0-5, 3     entry 8: 3-6, 7

An entry has the first offset of the transaction, the offset of its marker, and the last stable
offset behind the marker: the first offset of the first open transaction, or else the offset behind
the marker.
"""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.protocol.structs import NamedTuple
from barnabas.storage.errors import CorruptIndex
from barnabas.storage.index.txn_index import AbortedTxn
from barnabas.storage.readonly.segment import ReadOnlySegment
from barnabas.storage.verify import invariants
from barnabas.storage.verify.entry_walk import EntryWalk
from barnabas.storage.verify.report import FileReport


class AbortMarker(NamedTuple):
    """
    An ABORT marker, and the transaction that it ends as far as the log shows it.
    """

    producer_id: int
    offset: int
    first_offset: int | None
    """None if no transaction of the producer is known to have been open."""
    last_stable_offset: int


class TxnIndexCheck:
    """
    Compares the entries of a transaction index.
    """

    def __init__(self, segment: ReadOnlySegment, report: FileReport, *, live: bool) -> None:
        self._report = report
        self._live = live
        self._unknown = False
        self._entries = EntryWalk(
            self._read(segment),
            AbortedTxn(-1, -1, segment.base_offset - 1, -1),
            report,
            order=invariants.TXN_INDEX_ORDER,
            right=invariants.TXN_INDEX_ENTRY,
            expected=_order,
            text=_text,
        )

    def _read(self, segment: ReadOnlySegment) -> Iterator[AbortedTxn]:
        try:
            yield from segment.txn_entries()
        except CorruptIndex as error:
            self._report.add(invariants.TXN_INDEX_ENTRY, str(error), "version 0")
            self._unknown = True

    @property
    def _is_unknown(self) -> bool:
        """
        Whether an entry or a marker may be missing: a batch or the order of entries is damaged.
        """
        return self._unknown or self._entries.out_of_order > 0

    def abort(self, marker: AbortMarker, *, exact: bool) -> None:
        """
        Compare with a marker.

        Args:
            exact: whether the whole log is there, so that every number is known.
        """
        while (entry := self._entries.next) is not None and entry.last_offset < marker.offset:
            self._no_marker(entry)
            self._entries.advance()
        if entry is None or entry.last_offset != marker.offset:
            if exact and marker.first_offset is not None and not self._is_unknown:
                self._report.add(
                    invariants.TXN_INDEX_COMPLETE,
                    "no entry",
                    f"one for the transaction of producer {marker.producer_id} from offset"
                    f" {marker.first_offset} to {marker.offset}",
                    offset=marker.offset,
                )
            return
        expected = _expected(entry, marker, exact=exact)
        if entry != expected:
            self._entries.add(_text(expected), offset=marker.offset)
        self._entries.advance()

    def unknown(self) -> None:
        """
        A batch is damaged; it may have been a marker.
        """
        self._unknown = True

    def end(self) -> None:
        """
        Report the entries behind the last marker.
        """
        while (entry := self._entries.next) is not None:
            if not self._live:
                self._no_marker(entry)
            self._entries.advance()

    def _no_marker(self, entry: AbortedTxn) -> None:
        if not self._is_unknown:
            expected = f"an ABORT marker at offset {entry.last_offset}"
            self._entries.add(expected, offset=entry.last_offset)


def _expected(entry: AbortedTxn, marker: AbortMarker, *, exact: bool) -> AbortedTxn:
    """
    *entry* with the numbers that the log shows to be wrong replaced by the right ones.
    """
    expected = entry._replace(producer_id=marker.producer_id)
    if marker.first_offset is not None:
        if exact or entry.first_offset > marker.first_offset:
            expected = expected._replace(first_offset=marker.first_offset)
        if exact:
            expected = expected._replace(last_stable_offset=marker.last_stable_offset)
    if entry.first_offset > entry.last_offset or entry.last_stable_offset > marker.offset + 1:
        # In every log, a transaction ends behind its beginning, and the last stable offset is not
        # above the end of the log.
        expected = expected._replace(
            first_offset=min(expected.first_offset, entry.last_offset),
            last_stable_offset=min(expected.last_stable_offset, marker.offset + 1),
        )
    return expected


def _order(entry: AbortedTxn, last: AbortedTxn) -> str | None:
    return None if entry.last_offset > last.last_offset else f"more than {last.last_offset}"


def _text(entry: AbortedTxn) -> str:
    return (
        f"producer {entry.producer_id} from {entry.first_offset} to {entry.last_offset},"
        f" stable up to {entry.last_stable_offset}"
    )
