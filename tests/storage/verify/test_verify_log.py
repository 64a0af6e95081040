from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from crc32c import crc32c

from barnabas.protocol.compression import CompressionType
from barnabas.protocol.records.batch import (
    ATTRIBUTES_AT,
    CRC_AT,
    MAX_TIMESTAMP_AT,
    build_batch,
    build_batch_with_offsets,
    read_batch,
)
from barnabas.protocol.records.record import Record, SimpleRecord
from barnabas.storage.index.txn_index import AbortedTxn
from barnabas.storage.producers.entry import ProducerStateEntry
from barnabas.storage.producers.snapshots import encode_snapshot
from barnabas.storage.readonly.partition import PartitionDirectory
from barnabas.storage.verify.context import DirectoryState, LogContext
from barnabas.storage.verify.partition import PartitionCheck
from barnabas.storage.verify.report import MOST_ALIKE, VerifyReport, Violation
from barnabas.storage.verify.transactions import AbortMarker, _expected
from barnabas.testing.disks.memory import MemoryFiles
from tests.support.bombs import bomb, memory_below
from tests.support.clock import StillClock
from tests.support.limits import stated
from tests.support.logs import DIRECTORY, LogHome, begin_transaction, end_transaction, log_of
from tests.support.segments import FIRST_TIMESTAMP, padded_batch
from tests.support.some import some
from tests.support.sound_directory import ROOT, sound_directory
from tests.support.verifying import log_violations

LOG = DIRECTORY / f"{0:020d}.log"
CLEAN = LogContext(state=DirectoryState.CLEAN, may_be_compacted=False)
COMPACTED = LogContext(state=DirectoryState.CLEAN, may_be_compacted=True)


class Files(MemoryFiles):
    """
    The directory of a log of these batches, each with the offsets that follow.
    """

    def __init__(self, *batches: bytes | bytearray | memoryview, base_offset: int = 0) -> None:
        super().__init__()
        self.make_directory(DIRECTORY)
        self.segment(base_offset, *batches)

    def segment(self, base_offset: int, *batches: bytes | bytearray | memoryview) -> None:
        path = DIRECTORY / f"{base_offset:020d}.log"
        file = self.open(path)
        for batch in batches:
            file.append(batch)
        largest = [read_batch(memoryview(batch)) for batch in batches]
        best = max(largest, key=lambda batch: batch.max_timestamp, default=None)
        self.open(path.with_suffix(".index"))
        times = self.open(path.with_suffix(".timeindex"))
        if best is not None and best.max_timestamp > 0:
            times.append(best.max_timestamp.to_bytes(8, "big"))
            times.append((best.last_offset - base_offset).to_bytes(4, "big"))


def check(files: MemoryFiles, context: LogContext = CLEAN) -> list[Violation]:
    return log_violations(files, context)


def rules(files: MemoryFiles, context: LogContext = CLEAN) -> list[str]:
    return [each.rule for each in check(files, context)]


def batch(*offsets: int, **options: Any) -> bytearray:
    """
    A batch with these offsets; *options* are those of ``build_batch_with_offsets``.
    """
    records = [Record(offset, FIRST_TIMESTAMP + offset, b"k", b"v") for offset in offsets]
    options = {"partition_leader_epoch": 0, **options}
    return build_batch_with_offsets(records, base_offset=offsets[0], **options)


def changed(data: bytearray, at: int, *values: int) -> bytearray:
    """
    Overwrite bytes of a batch, which keeps a correct checksum.
    """
    data[at : at + len(values)] = bytes(values)
    data[CRC_AT:ATTRIBUTES_AT] = crc32c(data[ATTRIBUTES_AT:]).to_bytes(4, "big")
    return data


# Batches.


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (batch(0, 1, 2), []),
        (padded_batch(0), []),
        *((changed(batch(0), 22, codec), ["batch-codec"]) for codec in (5, 6, 7)),
        # Kafka stores what a producer has sent there.
        (changed(batch(0), 21, 0x7F), []),
        # LogAppendTime need not be the timestamp of a record.
        (changed(changed(batch(0, 1), 22, 0x08), MAX_TIMESTAMP_AT + 7, 99), []),
        (changed(batch(0, 2, 1), 26, 2), ["record-offsets"]),
        (
            changed(batch(0, producer_id=5, producer_epoch=0, base_sequence=0), 53, *[0xFF] * 4),
            ["batch-producer"],
        ),
    ],
)
def test_malformed_batch_is_found(data: bytearray, expected: list[str]) -> None:
    assert expected == rules(Files(data))


def test_max_timestamp_that_no_record_has_is_found() -> None:
    data = batch(0, 1)

    (violation,) = check(Files(changed(data, MAX_TIMESTAMP_AT + 7, data[MAX_TIMESTAMP_AT + 7] + 1)))

    assert ("batch-timestamp", 0) == (violation.rule, violation.position)
    assert f"max timestamp {FIRST_TIMESTAMP + 2}" == violation.found
    assert str(FIRST_TIMESTAMP + 1) == violation.expected


@pytest.mark.parametrize("codec", [CompressionType.GZIP, CompressionType.LZ4, CompressionType.ZSTD])
def test_truncated_compressed_data_is_found(codec: CompressionType) -> None:
    whole = build_batch([SimpleRecord(FIRST_TIMESTAMP, b"k", b"v" * 1000)], compression=codec)
    data = whole[:-3]

    files = Files(changed(data, 8, *(len(data) - 12).to_bytes(4, "big")))

    assert rules(files) in (["batch-compression"], ["record-format"])


@pytest.mark.parametrize("codec", [codec for codec in CompressionType if codec])
def test_decompression_bomb_is_found(codec: CompressionType) -> None:
    good = build_batch([SimpleRecord(1, b"k", b"v")])
    files = Files(good, bomb(codec, base_offset=1))

    with memory_below(int(stated("decompressed"))):
        (found,) = check(files)

    assert ("batch-compression", LOG) == (found.rule, found.path)
    assert (len(good), 1) == (found.position, found.offset)


def test_missing_records_of_a_batch_are_found_as_kafkas_tool_says() -> None:
    (found,) = check(Files(changed(batch(0, 1), 60, 3)))

    assert "record-format" == found.rule
    assert "Incorrect declared batch size, premature EOF reached" == found.found


def test_record_offsets_outside_their_batch_are_found() -> None:
    """
    Kafka stores such a batch of a producer unchanged.
    """
    (violation,) = check(Files(changed(batch(0, 3), 26, 1)))

    assert ("warning", "record-offsets") == (violation.severity.value, violation.rule)


# Control batches.


def control(*records: tuple[bytes, bytes], sequence: int = -1, producer_id: int = 5) -> bytearray:
    """
    A control batch of these keys and values.
    """
    data = build_batch_with_offsets(
        [Record(at, FIRST_TIMESTAMP, *pair) for at, pair in enumerate(records)],
        base_offset=0,
        partition_leader_epoch=0,
        producer_id=producer_id,
        producer_epoch=0 if producer_id >= 0 else -1,
        base_sequence=sequence,
    )
    return changed(data, 22, 0x20 | (0x10 if producer_id >= 0 else 0))


def emptied_by_compaction(data: bytearray) -> bytearray:
    return changed(changed(data[:61], 57, 0, 0, 0, 0), 8, 0, 0, 0, 61 - 12)


COMMIT = b"\0\0\0\1", b"\0\0\0\0\0\0"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (control(COMMIT), []),
        (emptied_by_compaction(control(COMMIT)), []),
        (control(COMMIT, sequence=0), ["batch-producer"]),
        (control(COMMIT, COMMIT), ["control-record"]),
        (control((b"\0\0\0\1", b"\0\0")), ["control-record"]),
        (control((b"\0\0\0\2", b"\0\0\0\0\0\0")), ["control-record"]),
        (control((b"\0", b"\0\0\0\0\0\0")), ["control-record"]),
        (control((b"\0\0\0\2", b""), (b"\0\0\0\5", b""), producer_id=-1), []),
        (control((b"\0\0\0\x07", b""), producer_id=-1), ["control-record"]),
    ],
)
def test_malformed_control_batches_are_found(data: bytearray, expected: list[str]) -> None:
    assert expected == rules(Files(data))


# Segments.


@pytest.mark.parametrize(
    ("batches", "expected", "in_compacted"),
    [
        ([batch(0, 1), batch(2), batch(3, 4, 5)], [], []),
        ([batch(0), batch(2)], ["offset-gap"], []),
        # A batch with removed records shows that the log was compacted.
        ([batch(0, 2), batch(5)], [], []),
        ([batch(4), batch(5)], ["offset-gap"], []),
        ([batch(0, 1), batch(1), batch(2)], ["batch-offsets"], ["batch-offsets"]),
    ],
)
def test_offsets_increase_without_gaps_unless_the_log_was_compacted(
    batches: list[bytearray], expected: list[str], in_compacted: list[str]
) -> None:
    assert [expected, in_compacted] == [
        rules(Files(*batches), context) for context in (CLEAN, COMPACTED)
    ]


def test_offsets_outside_the_range_of_a_segment_are_found() -> None:
    assert ["batch-offsets"] == rules(Files(batch(4), batch(5), base_offset=5))
    assert "batch-offsets" in rules(Files(batch(2**31)), COMPACTED)


def test_segment_that_overlaps_the_next_one_is_reported_once() -> None:
    files = Files(batch(0), batch(1), batch(2), batch(3))
    files.segment(2, batch(2), batch(3))

    (violation,) = check(files)

    assert ("segment-overlap", 2) == (violation.rule, violation.offset)


def test_segment_larger_than_allowed_is_found() -> None:
    files = Files(batch(0))
    size = files.size
    files.size = lambda path: 2**31 if path == LOG else size(path)  # type: ignore[method-assign]  # no test has such a file

    assert ["segment-size"] == rules(files)


def test_empty_segments_are_accepted_anywhere_in_a_compacted_log() -> None:
    files = Files()
    files.segment(4, batch(5))
    files.segment(6)

    assert [] == rules(files, COMPACTED)


def test_verification_resumes_behind_damage_at_an_index_entry() -> None:
    """
    Otherwise everything behind a batch with a wrong length would go unchecked.
    """
    home, log = log_of(20, segment_bytes=100_000, index_interval_bytes=150)
    home.stop(log)
    data = home.file(0, ".log")
    data[150 * 5 + 8] = 0x70  # the length of the sixth batch
    data[150 * 15 + 100] ^= 1  # a record of the sixteenth

    found = [(each.rule, each.position) for each in check(home.files)]

    assert [("batch-incomplete", 750), ("batch-crc", 2250)] == found


def test_number_of_reported_violations_of_a_kind_is_limited() -> None:
    batches = [batch(at) for at in range(20)]
    for data in batches:
        data[30] ^= 1
    told: list[Violation] = []
    report = VerifyReport(told.append)

    partition = PartitionDirectory(DIRECTORY, Files(*batches))
    PartitionCheck(partition, CLEAN, report, StillClock()).run()

    crcs = [each for each in told if each.rule == "batch-crc"]
    assert MOST_ALIKE == len(crcs)
    assert {("batch-crc", LOG): 20 - MOST_ALIKE} == report.untold
    assert report.errors >= 20


# After a crash.


def crashed(recovery_point: int = 0, **options: bool) -> LogContext:
    options = {"may_be_compacted": False, **options}
    return LogContext(state=DirectoryState.CRASHED, recovery_point=recovery_point, **options)


@pytest.mark.parametrize(
    ("recovery_point", "later", "expected"),
    [
        (0, [batch(2)], {"batch-crc": "warning"}),
        (1, [batch(2)], {"batch-crc": "warning"}),
        (2, [batch(2)], {"batch-crc": "error"}),
        # The next start cuts the end off, but it was flushed.
        (2, [], {"batch-crc": "warning", "recovery-point": "error"}),
    ],
)
def test_damage_that_the_next_start_repairs_is_a_warning(
    recovery_point: int, later: list[bytearray], expected: dict[str, str]
) -> None:
    damaged = batch(1)
    damaged[-1] ^= 1
    files = Files(batch(0), damaged)
    if later:
        files.segment(2, *later)

    found = {each.rule: each.severity.value for each in check(files, crashed(recovery_point))}

    assert expected == found


def test_zeros_behind_the_last_batch_are_accepted_with_preallocation() -> None:
    files = Files(batch(0))
    files.open(LOG).append(bytes(500))

    assert ["zero-tail"] == rules(files, crashed())
    assert [] == rules(files, crashed(preallocate=True))


# Producers and transactions.


def sent(
    offset: int, sequence: int, *, epoch: int = 0, producer: int = 5, **more: Any
) -> bytearray:
    fields = {"producer_id": producer, "producer_epoch": epoch, "base_sequence": sequence}
    return batch(offset, **fields, **more)


@pytest.mark.parametrize(
    ("batches", "expected", "in_compacted"),
    [
        ([sent(0, 0), sent(1, 1)], [], []),
        ([sent(0, 7), sent(1, 8)], [], []),
        ([sent(0, 2**31 - 1), sent(1, 0)], [], []),
        ([sent(0, 0), sent(1, 2)], ["producer-sequence"], ["producer-sequence"]),
        ([sent(0, 0), sent(2, 2), sent(4, 0, epoch=2)], ["offset-gap"] * 2, []),
        ([sent(0, 0), sent(1, 0)], ["producer-sequence"], ["producer-sequence"]),
        ([sent(0, 0), sent(1, 0, epoch=1)], [], []),
        ([sent(0, 0), sent(1, 1, epoch=1)], ["producer-sequence"], ["producer-sequence"]),
        ([sent(0, 0, epoch=1), sent(1, 1)], ["producer-epoch"], ["producer-epoch"]),
        ([sent(0, 0), sent(1, 0, producer=6), sent(2, 1)], [], []),
        ([sent(0, 0, is_transactional=True), sent(1, 1)], ["txn-state"], ["txn-state"]),
    ],
)
def test_sequences_of_a_producer_must_be_consecutive_unless_the_log_was_compacted(
    batches: Sequence[bytearray], expected: list[str], in_compacted: list[str]
) -> None:
    assert [expected, in_compacted] == [
        rules(Files(*batches), context) for context in (CLEAN, COMPACTED)
    ]


def transaction_log() -> LogHome:
    """
    Two transactions that are aborted, and one of another producer that goes on.
    """
    home = LogHome()
    log = home.open()
    for producer_id, sequence in ((7, 0), (8, 0), (7, 1)):
        if sequence:
            end_transaction(log, 7, commit=False)
        begin_transaction(log, producer_id, sequence=sequence)
    end_transaction(log, 7, commit=False)
    log.update_high_watermark(log.log_end_offset)
    home.stop(log)
    return home


@pytest.mark.parametrize(
    ("position", "value", "rules_of_it"),
    [
        (9, 7, []),
        (9, 9, ["txn-index-entry"]),  # the producer
        (17, 1, ["txn-index-entry"]),  # the first offset
        # The last stable offset: the other transaction begins at 1.
        (33, 5, ["txn-index-entry"]),
        (25, 1, ["txn-index-entry", "txn-index-complete"]),  # the last offset: there is no marker
        # Out of order, it may belong to any marker: none is missing.
        (59, 2, ["txn-index-order"]),
    ],
)
def test_index_entry_that_does_not_match_its_marker_is_found(
    position: int, value: int, rules_of_it: list[str]
) -> None:
    home = transaction_log()
    assert (value == home.file(0, ".txnindex")[position]) == (rules_of_it == [])
    home.file(0, ".txnindex")[position] = value

    assert rules_of_it == rules(home.files)


@pytest.mark.parametrize(
    ("entry", "right"),
    [
        (AbortedTxn(5, 1, 4, 99), AbortedTxn(5, 1, 4, 5)),
        (AbortedTxn(5, 9, 4, 2), AbortedTxn(5, 4, 4, 2)),
        (AbortedTxn(5, 1, 4, 2), AbortedTxn(5, 1, 4, 2)),
    ],
    ids=["last stable offset above the end", "begins behind its end", "possible"],
)
def test_entry_whose_transaction_is_unknown_is_corrected_where_no_log_allows_it(
    entry: AbortedTxn, right: AbortedTxn
) -> None:
    marker = AbortMarker(5, offset=4, first_offset=None, last_stable_offset=0)

    assert right == _expected(entry, marker, exact=False)


def test_aborted_transaction_without_an_index_entry_is_found() -> None:
    home = transaction_log()
    del home.file(0, ".txnindex")[34:]

    (violation,) = check(home.files)

    assert ("txn-index-complete", 4) == (violation.rule, violation.offset)


# Snapshots.


def state(**changed: Any) -> ProducerStateEntry:
    """
    That of producer 5 after its batch with offset 0 and sequence 0.
    """
    fields = {"epoch": 0, "sequence": 0, "offset": 0, "timestamp": FIRST_TIMESTAMP, **changed}
    entry = ProducerStateEntry(
        fields.get("producer_id", 5), current_txn_first_offset=fields.get("transaction")
    )
    entry.add_batch(
        fields["epoch"], fields["sequence"], fields["offset"], 0, timestamp=fields["timestamp"]
    )
    return entry


def with_snapshot(files: Files, offset: int, *entries: ProducerStateEntry) -> Files:
    files.open(DIRECTORY / f"{offset:020d}.snapshot").append(encode_snapshot(list(entries)))
    return files


@pytest.mark.parametrize(
    ("changed", "is_fine"),
    [
        ({}, True),
        ({"epoch": 1}, False),
        ({"sequence": 1}, False),
        ({"offset": 1}, False),
        ({"timestamp": 5}, False),
        ({"producer_id": 6}, False),
        ({"transaction": 0}, False),
        ({"transaction": 9}, False),
    ],
)
def test_producer_snapshot_must_match_the_records(changed: dict[str, Any], is_fine: bool) -> None:
    files = with_snapshot(Files(sent(0, 0), sent(1, 1)), 1, state(**changed))

    assert ([] if is_fine else ["snapshot-producer"]) == rules(files)


@pytest.mark.parametrize(
    ("is_transactional", "expected"), [(False, []), (True, ["snapshot-producer"])]
)
def test_producer_snapshot_may_lack_a_producer_but_not_its_open_transaction(
    is_transactional: bool, expected: list[str]
) -> None:
    files = Files(sent(0, 0, is_transactional=is_transactional))

    assert expected == rules(with_snapshot(files, 1))


def test_producer_snapshot_may_have_producers_whose_records_were_deleted() -> None:
    assert [] == check(with_snapshot(Files(batch(9), base_offset=9), 10, state(offset=3)))


def test_producer_snapshot_before_the_first_segment_is_trusted() -> None:
    """
    It is the only evidence of a transaction begun in deleted segments.
    """
    entry = state(offset=3, transaction=3)
    files = with_snapshot(Files(sent(9, 5), base_offset=9), 9, entry)

    assert ["producer-sequence", "txn-state"] == rules(files)


def test_producer_snapshot_beyond_the_log_end_is_found() -> None:
    assert ["snapshot-end"] == rules(with_snapshot(Files(sent(0, 0)), 3, state()))


def test_logs_of_the_sound_directory_have_no_violations_alone() -> None:
    files = sound_directory()
    logs = [ROOT / name for name in files.names(ROOT) if files.is_directory(ROOT / name)]

    for log in some(logs):
        assert [] == log_violations(files, LogContext(), log)
