"""
Dumping ``.index``, ``.timeindex`` and ``.txnindex``, and comparing the first two with the log.

An index is read into memory with the zeros at its end, and the engine's class for it finds entries
there. Kafka's tool opens the file as a broker does: it makes a missing one, and cuts off bytes
behind the last whole entry. Both would harm a running broker.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final, TypeVar

from barnabas.protocol.records.varints import int64
from barnabas.storage.dump.batches import last_offset, read_batch, read_message
from barnabas.storage.dump.failure import ILLEGAL_ARGUMENT, KAFKA_EXCEPTION, DumpFailure
from barnabas.storage.dump.files import DumpedFile, FileBatch, LogSlice, kafkas_exceptions, open_log
from barnabas.storage.dump.findings import Findings
from barnabas.storage.dump.options import DumpOptions
from barnabas.storage.dump.report import DumpReport
from barnabas.storage.dump.streams import decompressed
from barnabas.storage.errors import CorruptIndex
from barnabas.storage.fs.interface import Files
from barnabas.storage.index.base import Index
from barnabas.storage.index.offset_index import OffsetIndex
from barnabas.storage.index.time_index import TimeIndex
from barnabas.storage.index.txn_index import CURRENT_VERSION, ENTRY
from barnabas.storage.readonly.files import read_if_exists
from barnabas.storage.readonly.index_file import BytesInMemory
from barnabas.storage.segment.records import LARGEST_FILE
from barnabas.storage.state_files.file_names import INDEX_SUFFIX, LOG_SUFFIX

_HEADERS_AHEAD_BYTES: Final = 64
_NEAR_AHEAD_BYTES: Final = 4096
_WALK_AHEAD_BYTES: Final = 64 * 1024
_NO_TIMESTAMP: Final = -1
_NO_OFFSET: Final = -1

IndexT = TypeVar("IndexT", bound=Index)


def _read_index(cls: type[IndexT], files: Files, path: str, base_offset: int) -> IndexT:
    """
    Raises:
        DumpFailure: there is no such file. Kafka's tool makes an empty one and then fails.
    """
    with kafkas_exceptions(path):
        data = read_if_exists(files, Path(path))
    if data is None:
        raise DumpFailure(ILLEGAL_ARGUMENT, "Invalid max index size: -1")
    return cls(BytesInMemory(Path(path), data), base_offset, -1)


class IndexDump:
    """
    Dumps indexes: prints their entries, compares them with the log, or checks their sanity only.
    """

    def __init__(self, report: DumpReport, findings: Findings, options: DumpOptions) -> None:
        self._report = report
        self._findings = findings
        self._options = options
        self._sanity_only = options.has("index-sanity-check")
        self._verify_only = options.has("verify-index-only")

    def dump_offset_index(self, file: DumpedFile) -> None:
        """
        Raises:
            DumpFailure, CorruptIndex: the index or the log is missing, or they contradict each
                other.
        """
        max_message_size = self._options.integer("max-message-size")
        base_offset = file.base_offset
        with open_log(file.files, file.sibling(LOG_SUFFIX)) as log:
            index = _read_index(OffsetIndex, file.files, file.absolute_path, base_offset)
            if index.entries == 0:
                self._report.tell("emptyIndex", {})
                return
            if self._sanity_only:
                self._check_sanity(index, file)
                return
            for slot in range(index.entries):
                offset, position = index.entry(slot)
                if offset == base_offset and slot > 0:
                    # The rest is zeros, which a broker cuts off when it closes the index.
                    return
                offset = int64(offset)
                found = _last_offset_in(log.slice(position, max_message_size))
                if found != offset:
                    self._findings.index_mismatch(file.absolute_path, offset, found)
                if not self._verify_only:
                    self._report.tell("offsetEntry", {"offset": offset, "position": position})

    def _check_sanity(self, index: Index, file: DumpedFile) -> None:
        try:
            index.sanity_check()
        except CorruptIndex as error:
            # Kafka's tool does not simplify the path.
            sentence = str(error).replace(str(index.path), file.absolute_path)
            raise CorruptIndex(sentence, path=index.path) from error
        self._report.tell("saneIndex", {})

    def dump_time_index(self, file: DumpedFile) -> None:
        """
        Raises:
            DumpFailure, CorruptIndex: one of the indexes or the log is missing, or they contradict
                each other.
        """
        base_offset = file.base_offset
        with open_log(file.files, file.sibling(LOG_SUFFIX)) as log:
            offsets = _read_index(OffsetIndex, file.files, file.sibling(INDEX_SUFFIX), base_offset)
            index = _read_index(TimeIndex, file.files, file.absolute_path, base_offset)
            if self._sanity_only:
                self._check_sanity(index, file)
                return
            self._dump_time_entries(file, log, offsets, index)

    def _dump_time_entries(
        self, file: DumpedFile, log: LogSlice, offsets: OffsetIndex, index: TimeIndex
    ) -> None:
        entries = [index.entry(slot) for slot in range(index.entries)]
        walk = LogWalk(log, {offsets.lookup(offset).position for _, offset in entries})
        previous = _NO_TIMESTAMP
        for slot, (timestamp, offset) in enumerate(entries):
            if offset == index.base_offset and slot > 0:
                return
            batch = walk.first_ending_at(offset, offsets.lookup(offset).position)
            self._check_time_entry(file.absolute_path, timestamp, int64(offset), batch, previous)
            if not self._verify_only:
                self._report.tell("timeEntry", {"timestamp": timestamp, "offset": int64(offset)})
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


def _last_offset_in(part: LogSlice) -> int:
    batch = next(part.batches(_HEADERS_AHEAD_BYTES), None)
    if batch is None:
        raise DumpFailure("java.util.NoSuchElementException")
    return last_offset(batch)


class LogWalk:
    """
    Finds batches, and makes sure that the log can be read up to its end behind each of them.

    Kafka's tool reads all headers up to the end for every entry of the index. One walk here checks
    the rest of the log for all positions on its way.

    Args:
        positions: the positions that ``first_ending_at`` will be given.
    """

    def __init__(self, log: LogSlice, positions: set[int]) -> None:
        self._log = log
        self._positions = positions
        self._readable: set[int] = set()

    def first_ending_at(self, offset: int, position: int) -> FileBatch | None:
        """
        The first batch from *position* on whose last offset is *offset* or larger.

        Raises:
            DumpFailure: not all headers behind *position* can be read.
        """
        rest = self._log.slice(position, LARGEST_FILE)
        if position not in self._readable:
            for batch in rest.batches(_WALK_AHEAD_BYTES):
                if batch.position in self._positions:
                    self._readable.add(batch.position)
        near = rest.batches(_NEAR_AHEAD_BYTES)
        return next((batch for batch in near if last_offset(batch) >= offset), None)


def _timestamps(found: FileBatch) -> Iterator[int]:
    if found.magic < 2:
        for record in read_message(found).unwrapped(decompressed):
            record.ensure_not_compressed()
            yield record.timestamp
        return
    reader = read_batch(found).reader()
    while reader.advance():
        yield reader.timestamp


def dump_txn_index(file: DumpedFile, report: DumpReport) -> None:
    """
    Print the aborted transactions. Most segments have no transaction index: nothing is printed.

    The version is the first byte of its two, as in Kafka's AbortedTxn.

    Raises:
        DumpFailure: a later version wrote the index, or the file cannot be read.
    """
    file.base_offset  # noqa: B018  # Kafka's tool fails if the name has none.
    with kafkas_exceptions(file.path):
        data = read_if_exists(file.files, Path(file.path)) or b""
    whole = memoryview(data)[: len(data) - len(data) % ENTRY.size]
    entries = [(version >> 8, *rest) for version, *rest in ENTRY.iter_unpack(whole)]
    for version, *_ in entries:
        if version > CURRENT_VERSION:
            raise DumpFailure(
                KAFKA_EXCEPTION,
                f"Unexpected aborted transaction version {version} in transaction index "
                f"{file.absolute_path}, current version is {CURRENT_VERSION}",
            )
    names = ("version", "producerId", "firstOffset", "lastOffset", "lastStableOffset")
    for entry in entries:
        report.tell("abortedTxn", dict(zip(names, entry, strict=True)))
