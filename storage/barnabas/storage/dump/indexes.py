"""
Dumping ``.index``, ``.timeindex`` and ``.txnindex``, and holding the first two against the log.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from struct import Struct
from typing import Final

from barnabas.storage.dump.batch_view import view
from barnabas.storage.dump.failure import KAFKA_EXCEPTION, DumpFailure
from barnabas.storage.dump.findings import Findings
from barnabas.storage.dump.index_file import OffsetIndexFile, TimeIndexFile
from barnabas.storage.dump.legacy import outer_record
from barnabas.storage.dump.log_slice import LARGEST_INT, FileBatch, LogSlice
from barnabas.storage.dump.opening import DumpedFile, open_log
from barnabas.storage.dump.report import Report

_TXN_ENTRY: Final = Struct(">b x q q q q")
_HEADERS_AHEAD_BYTES: Final = 64
_NEAR_AHEAD_BYTES: Final = 4096
_WALK_AHEAD_BYTES: Final = 64 * 1024
_NO_TIMESTAMP: Final = -1
_NO_OFFSET: Final = -1


class IndexDump:
    """
    Dumps indexes, each of them in one of three ways.

    Args:
        sanity_only: only check what a broker checks when it starts.
        verify_only: hold the entries against the log, but do not show them.
        max_message_size: bytes of the log looked at for each entry of an offset index.
    """

    def __init__(
        self,
        report: Report,
        findings: Findings,
        *,
        sanity_only: bool,
        verify_only: bool,
        max_message_size: int,
    ) -> None:
        self._report = report
        self._findings = findings
        self._sanity_only = sanity_only
        self._verify_only = verify_only
        self._max_message_size = max_message_size

    def dump_offset_index(self, file: DumpedFile) -> None:
        """
        Raises:
            DumpFailure: index or log are missing, or not what the other one says.
        """
        base_offset = file.base_offset
        with open_log(file.files, file.sibling(".log")) as log:
            index = OffsetIndexFile(file.files, file.absolute_path, base_offset)
            if index.entries == 0:
                self._report.empty_index(file.path)
                return
            if self._sanity_only:
                index.sanity_check()
                self._report.sane_index(file.path)
                return
            for slot in range(index.entries):
                offset, position = index.entry(slot)
                if offset == base_offset and slot > 0:
                    # Zeros that a broker had no time to cut off.
                    return
                found = self._last_offset_at(log, position)
                if found != offset:
                    self._findings.index_mismatch(file.absolute_path, offset, found)
                if not self._verify_only:
                    self._report.offset_entry(offset, position)

    def _last_offset_at(self, log: LogSlice, position: int) -> int:
        batches = log.slice(position, self._max_message_size).batches(_HEADERS_AHEAD_BYTES)
        batch = next(batches, None)
        if batch is None:
            raise DumpFailure("java.util.NoSuchElementException")
        return last_offset(batch)

    def dump_time_index(self, file: DumpedFile) -> None:
        """
        Raises:
            DumpFailure: one of the indexes or the log is missing, or not what another one says.
        """
        base_offset = file.base_offset
        with open_log(file.files, file.sibling(".log")) as log:
            offsets = OffsetIndexFile(file.files, file.sibling(".index"), base_offset)
            index = TimeIndexFile(file.files, file.absolute_path, base_offset)
            if self._sanity_only:
                index.sanity_check()
                self._report.sane_index(file.path)
                return
            self._dump_time_entries(file, log, offsets, index)

    def _dump_time_entries(
        self, file: DumpedFile, log: LogSlice, offsets: OffsetIndexFile, index: TimeIndexFile
    ) -> None:
        entries = (index.entry(slot) for slot in range(index.entries))
        walk = LogWalk(log, {offsets.lookup(offset) for _, offset in entries})
        previous = _NO_TIMESTAMP
        for slot in range(index.entries):
            timestamp, offset = index.entry(slot)
            if offset == index.base_offset and slot > 0:
                return
            batch = walk.first_ending_at(offset, offsets.lookup(offset))
            self._check_time_entry(file.absolute_path, timestamp, offset, batch, previous)
            if not self._verify_only:
                self._report.time_entry(timestamp, offset)
            previous = timestamp

    def _check_time_entry(
        self, path: str, timestamp: int, offset: int, batch: FileBatch | None, previous: int
    ) -> None:
        found = _NO_OFFSET if batch is None else last_offset(batch)
        if batch is None or found != offset:
            self._findings.add("offsetNotFound", path, offset, found)
            return
        largest = max(_timestamps(batch), default=_NO_TIMESTAMP)
        largest = max(largest, _NO_TIMESTAMP)
        if largest != timestamp:
            self._findings.add("timestampMismatch", path, timestamp, largest)
        if previous >= timestamp:
            self._findings.add("outOfOrderTimestamp", path, timestamp, previous)


class LogWalk:
    """
    Finds batches, and makes sure that the log can be read up to its end behind each of them.

    Kafka's tool reads all headers up to the end for every entry of the index. One walk does for all
    positions that it comes by.

    Args:
        positions: those from which will be looked for batches.
    """

    def __init__(self, log: LogSlice, positions: set[int]) -> None:
        self._log = log
        self._positions = positions
        self._readable: set[int] = set()

    def first_ending_at(self, offset: int, position: int) -> FileBatch | None:
        """
        The first batch from *position* on that ends with *offset* or behind it.

        Raises:
            DumpFailure: not all headers behind *position* can be read.
        """
        rest = self._log.slice(position, LARGEST_INT)
        if position not in self._readable:
            for batch in rest.batches(_WALK_AHEAD_BYTES):
                if batch.position in self._positions:
                    self._readable.add(batch.position)
        near = rest.batches(_NEAR_AHEAD_BYTES)
        return next((batch for batch in near if last_offset(batch) >= offset), None)


def last_offset(batch: FileBatch) -> int:
    """
    Raises:
        DumpFailure: the file ends before the header of the batch does.
    """
    return batch.offset if batch.magic < 2 else view(batch).last_offset


def _timestamps(batch: FileBatch) -> Iterable[int]:
    if batch.magic < 2:
        yield from (record.timestamp for record in outer_record(batch).records())
        return
    reader = view(batch).records()
    while reader.advance():
        yield reader.timestamp


def dump_txn_index(file: DumpedFile, report: Report) -> None:
    """
    Show the aborted transactions; none where there is no such file, which is the usual case.

    The version is the first byte of its two, as in Kafka's AbortedTxn.

    Raises:
        DumpFailure: the index was written by a later version.
    """
    file.base_offset  # noqa: B018  # The name of the file must have one.
    try:
        data = file.files.read_bytes(Path(file.path))
    except FileNotFoundError:
        return
    whole = memoryview(data)[: len(data) - len(data) % _TXN_ENTRY.size]
    entries = list(_TXN_ENTRY.iter_unpack(whole))
    for version, *_ in entries:
        if version > 0:
            raise DumpFailure(
                KAFKA_EXCEPTION,
                f"Unexpected aborted transaction version {version} in transaction index "
                f"{file.absolute_path}, current version is 0",
            )
    for entry in entries:
        report.aborted_txn(*entry)
