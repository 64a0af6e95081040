"""
What has to be true of a log that was opened after whatever happened.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Final

import pytest
from crc32c import crc32c

from barnabas.protocol.errors import OutOfOrderSequenceNumber
from barnabas.protocol.records.batch import RecordBatch, batches
from barnabas.storage.fs.interface import Files
from barnabas.storage.log.fetch_isolation import FetchIsolation
from barnabas.storage.log.log import Log
from barnabas.storage.segment.segment import LogSegment
from barnabas.storage.state_files.file_names import log_file, offset_index_file, time_index_file
from tests.support.crash.ledger import (
    Aborted,
    Entry,
    Ledger,
    committed_values,
    is_aborted,
    last_of_producers,
    records_by_offset,
    transactions_of,
)
from tests.support.logs import read_batches

OFFSET_ENTRY: Final = Struct(">ii")
TIME_ENTRY: Final = Struct(">qi")
SEQUENCE: Final = slice(53, 57)
CHECKSUM: Final = slice(17, 21)
CHECKED_FROM: Final = 21


def check_log(log: Log, ledger: Ledger) -> None:
    """
    A log has what was appended to it, but for records that no flush covers, in the same order.
    """
    assert log.topic_id == ledger.topic_id
    assert ledger.durable_end <= log.log_end_offset, "what was flushed is lost"
    assert ledger.durable_start <= log.log_start_offset, "deleted records are back"
    assert log.log_start_offset <= ledger.start, "the log starts behind its records"
    log.update_high_watermark(log.log_end_offset)
    found = read_batches(log)
    check_records = _check_values if ledger.config.compact else _check_bytes
    kept = check_records(log, ledger, found)
    _check_epochs(log, found)
    _check_timestamps(log, found)
    ledger.settle(kept, log.log_end_offset)
    _check_producers(log, ledger)
    _check_transactions(log, ledger)


def segments_in_use(log: Log) -> Sequence[LogSegment]:
    """
    What lies below the segment in which the log starts, nobody will ever read.
    """
    return log.segments.values_between(log.log_start_offset, log.log_end_offset + 1)


def _check_bytes(log: Log, ledger: Ledger, read: Sequence[RecordBatch]) -> list[Entry]:
    """
    A crash may take records that no flush covers and leave later segments: the log goes on there
    unless an index shows the loss. A gap ends where a segment begins.
    """
    segments = segments_in_use(log)
    data = b"".join(bytes(segment.log.slice(0, segment.log.size).read()) for segment in segments)
    first = segments[0].base_offset
    present = {batch.base_offset for batch in batches(data)}
    bases = {segment.base_offset for segment in segments}
    appended = [entry for entry in ledger.below(log.log_end_offset) if first <= entry.base_offset]
    kept, is_in_gap = [], False
    for entry in appended:
        if is_in_gap and entry.base_offset in bases:
            is_in_gap = False
        if entry.base_offset not in present:
            assert entry.last_offset >= ledger.durable_end, "what was flushed is lost"
            is_in_gap = True
        assert not (is_in_gap and entry.base_offset in present), "a gap ends within a segment"
        if not is_in_gap:
            kept.append(entry)
    assert data == b"".join(entry.data for entry in kept), (
        "the log is no part of what was appended: it has"
        f" {[(b.base_offset, b.last_offset) for b in read]} of"
        f" {[(e.base_offset, e.last_offset) for e in ledger.entries]}"
    )
    end = kept[-1].last_offset + 1 if kept else max(first, log.log_start_offset)
    assert end <= log.log_end_offset
    assert end == log.log_end_offset or log.log_end_offset == segments[-1].base_offset, (
        "the log ends behind its last record"
    )
    lost = {entry.base_offset for entry in appended} - {entry.base_offset for entry in kept}
    return [e for e in ledger.below(log.log_end_offset) if e.base_offset not in lost]


def _check_values(log: Log, ledger: Ledger, found: Sequence[RecordBatch]) -> list[Entry]:
    """
    Records may be missing, but whoever reads all ends up with the same. Of what was not flushed a
    batch in the middle may be missing: a gap is nothing unusual in a compacted log.
    """
    ends = {batch.last_offset for batch in found}
    entries = [
        entry
        for entry in ledger.below(log.log_end_offset)
        if entry.last_offset < ledger.durable_end or entry.last_offset in ends
    ]
    appended = records_by_offset(entries)
    assert all(batch.is_valid() for batch in found)
    offsets = [batch.base_offset for batch in found] + [log.log_end_offset]
    assert offsets == sorted(set(offsets)), "offsets do not grow"
    start = log.log_start_offset
    aborted = _aborted(log)
    values: dict[bytes | None, bytes | None] = {}
    for batch in found:
        if batch.is_control:
            continue
        for record in batch.records():
            was = appended[record.offset]
            assert (was.key, was.value) == (record.key, record.value)
            if record.offset >= start and not (
                batch.is_transactional and is_aborted(batch.producer_id, record.offset, aborted)
            ):
                values[record.key] = record.value
    # A tombstone may be gone, which is the same to a reader as its key.
    expected = committed_values(entries, start)
    assert {k: v for k, v in expected.items() if v is not None} == {
        k: v for k, v in values.items() if v is not None
    }, "keys have lost their values, or have older ones"
    return entries


def _check_epochs(log: Log, found: Sequence[RecordBatch]) -> None:
    known = log.leader_epochs.entries
    assert list(known) == sorted(known)
    assert all(entry.start_offset <= log.log_end_offset for entry in known)
    for batch in found:
        if batch.base_offset < log.log_start_offset:
            continue
        epochs = [entry.epoch for entry in known if entry.start_offset <= batch.base_offset]
        assert epochs, f"no epoch is known of {batch.base_offset}"
        assert batch.partition_leader_epoch == epochs[-1], f"the epoch of {batch.base_offset}"


def _check_timestamps(log: Log, found: Sequence[RecordBatch]) -> None:
    """
    No segment is older to retention than its records are.
    """
    for segment in segments_in_use(log):
        following = log.segments.higher_segment(segment.base_offset)
        end = log.log_end_offset if following is None else following.base_offset
        times = [b.max_timestamp for b in found if segment.base_offset <= b.base_offset < end]
        if times:
            largest = segment.largest_record_timestamp()
            assert (largest or 0) >= max(times), f"{segment} seems too old"


def _check_producers(log: Log, ledger: Ledger) -> None:
    """
    The last batch of each producer is known: sent again it is a duplicate, and one that leaves
    something out is refused.
    """
    end = log.log_end_offset
    for entry in last_of_producers(ledger.entries).values():
        if entry.base_offset < log.log_start_offset:
            continue
        again = log.append_as_leader(memoryview(_sent(entry.data)), ledger.leader_epoch)
        assert again.is_duplicate, f"a duplicate of {entry.base_offset} was appended"
        assert (entry.base_offset, entry.last_offset) == (again.first_offset, again.last_offset)
        later = _with_sequence(entry.data, entry.base_sequence + len(entry.records) + 1)
        with pytest.raises(OutOfOrderSequenceNumber):
            log.append_as_leader(memoryview(later), ledger.leader_epoch)
    assert end == log.log_end_offset


def _sent(data: bytearray) -> bytearray:
    """
    A batch as it was before the log gave it an offset.
    """
    return bytearray(8) + data[8:]


def _with_sequence(data: bytearray, sequence: int) -> bytearray:
    later = _sent(data)
    later[SEQUENCE] = sequence.to_bytes(4, "big")
    later[CHECKSUM] = crc32c(bytes(later[CHECKED_FROM:])).to_bytes(4, "big")
    return later


def _check_transactions(log: Log, ledger: Ledger) -> None:
    """
    Open transactions hold readers up where they begin, aborted ones are told.
    """
    expected = transactions_of(ledger.entries)
    start = log.log_start_offset
    if all(first >= start for first in expected.open.values()):
        unstable = min(expected.open.values(), default=log.log_end_offset)
        assert unstable == log.last_stable_offset, "readers may read too much, or too little"
    told = _aborted(log)
    if not ledger.may_be_cleaned:
        for txn in expected.aborted:
            assert txn.first_offset < start or txn in told, f"{txn} is not told"
    for txn in told:
        # Of one whose beginning was deleted, the beginning is where the log started.
        assert any(
            txn == known or (known.first_offset < start and txn[::2] == known[::2])
            for known in expected.aborted
        ), f"{txn} was never aborted"
    read_batches(log, FetchIsolation.TXN_COMMITTED)


def _aborted(log: Log) -> list[Aborted]:
    found = log.collect_aborted_transactions(log.first_segment_base_offset, log.log_end_offset)
    return [Aborted(txn.producer_id, txn.first_offset, txn.last_offset) for txn in found]


# Files


def check_indexes(files: Files, log: Log) -> None:
    """
    The indexes of a log that was closed point to where its batches are.
    """
    for segment in segments_in_use(log):
        base = segment.base_offset
        found = list(batches(files.read_bytes(log_file(log.dir, base))))
        _check_offset_index(files.read_bytes(offset_index_file(log.dir, base)), base, found)
        _check_time_index(files.read_bytes(time_index_file(log.dir, base)), base, found)


def _check_offset_index(data: bytes, base: int, found: Sequence[RecordBatch]) -> None:
    places = {batch.position: batch.last_offset for batch in found}
    before = -1
    for relative, position in OFFSET_ENTRY.iter_unpack(data):
        assert places.get(position) == base + relative, f"the index of {base} points nowhere"
        assert position > before, f"the index of {base} is not in order"
        before = position


def _check_time_index(data: bytes, base: int, found: Sequence[RecordBatch]) -> None:
    largest = -1
    introduced: set[tuple[int, int]] = set()
    for batch in found:
        if batch.max_timestamp > largest:
            largest = batch.max_timestamp
            introduced.add((largest, batch.last_offset))
    entries = list(TIME_ENTRY.iter_unpack(data))
    assert entries == sorted(set(entries)), f"the time index of {base} is not in order"
    for timestamp, relative in entries:
        assert (timestamp, base + relative) in introduced, f"time index of {base}: {timestamp}"
    if found:
        # A closed segment ends with its largest timestamp.
        assert entries[-1][0] == largest, f"the time index of {base} lacks its end"
