"""
What has to hold in one log: segments, records, producers, transactions.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
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
from barnabas.storage.producers.entry import ProducerStateEntry
from barnabas.storage.producers.snapshots import encode_snapshot
from barnabas.storage.readonly.partition import PartitionDirectory
from barnabas.storage.verify.context import DirectoryState, LogContext
from barnabas.storage.verify.partition import PartitionCheck
from barnabas.storage.verify.report import MOST_ALIKE, Report, Violation
from barnabas.testing.disks.memory import MemoryFiles
from tests.support.bombs import bomb, memory_below
from tests.support.clock import StillClock
from tests.support.limits import stated
from tests.support.logs import DIRECTORY, LogHome, append, end_transaction, produce
from tests.support.segments import FIRST_TIMESTAMP, padded_batch
from tests.support.some import some
from tests.support.sound_directory import sound_directory

LOG = DIRECTORY / f"{0:020d}.log"
CLEAN = LogContext(state=DirectoryState.CLEAN, may_be_compacted=False)


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
    """
    What is found but for the topic id and the epochs, which are not there.
    """
    violations: list[Violation] = []
    partition = PartitionDirectory(DIRECTORY, files)
    PartitionCheck(partition, context, Report(violations.append), StillClock()).run()
    ignored = ("partition-metadata", "epochs-missing")
    return [each for each in violations if each.rule not in ignored]


def rules(files: MemoryFiles, context: LogContext = CLEAN) -> list[str]:
    return [each.rule for each in check(files, context)]


def batch(*offsets: int, **options: Any) -> bytearray:
    """
    A batch with these offsets; *options* are those of ``build_batch_with_offsets``.
    """
    records = [Record(offset, FIRST_TIMESTAMP + offset, b"k", b"v") for offset in offsets]
    options = {"partition_leader_epoch": 0, **options}
    return build_batch_with_offsets(records, base_offset=offsets[0], **options)


def seal(data: bytearray) -> None:
    """
    Give a batch that was changed the checksum that it should have.
    """
    data[CRC_AT:ATTRIBUTES_AT] = crc32c(data[ATTRIBUTES_AT:]).to_bytes(4, "big")


# Batches.


def test_valid_batches_are_not_reported() -> None:
    assert [] == check(Files(batch(0, 1), batch(2), batch(3, 4, 5)))


def test_max_timestamp_that_no_record_has_is_found() -> None:
    data = batch(0, 1)
    data[MAX_TIMESTAMP_AT + 7] += 1
    seal(data)

    (violation,) = check(Files(data))

    assert ("batch-timestamp", 0) == (violation.rule, violation.position)
    assert f"max timestamp {FIRST_TIMESTAMP + 2}" == violation.found
    assert str(FIRST_TIMESTAMP + 1) == violation.expected


def test_log_append_time_need_not_be_a_record_timestamp() -> None:
    data = batch(0, 1)
    data[22] |= 0x08
    data[MAX_TIMESTAMP_AT + 7] += 100
    seal(data)

    assert [] == check(Files(data))


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_unknown_codec_is_found(codec: int) -> None:
    data = batch(0)
    data[22] |= codec
    seal(data)

    assert ["batch-codec"] == rules(Files(data, batch(1)))


def test_unknown_attribute_bits_are_accepted() -> None:
    """
    Kafka stores what a producer has sent there.
    """
    data = batch(0)
    data[21] = 0x7F
    seal(data)

    assert [] == check(Files(data))


@pytest.mark.parametrize("codec", [CompressionType.GZIP, CompressionType.LZ4, CompressionType.ZSTD])
def test_truncated_compressed_data_is_found(codec: CompressionType) -> None:
    whole = build_batch([SimpleRecord(FIRST_TIMESTAMP, b"k", b"v" * 1000)], compression=codec)
    data = whole[:-3]
    data[8:12] = (len(data) - 12).to_bytes(4, "big")
    seal(data)

    assert rules(Files(data)) in (["batch-compression"], ["record-format"])


@pytest.mark.parametrize("codec", [codec for codec in CompressionType if codec])
def test_decompression_bomb_is_found(codec: CompressionType) -> None:
    good = build_batch([SimpleRecord(1, b"k", b"v")])
    files = Files(good, bomb(codec, base_offset=1))

    with memory_below(int(stated("decompressed"))):
        (found,) = check(files)

    assert ("batch-compression", LOG, len(good), 1) == (
        found.rule,
        found.path,
        found.position,
        found.offset,
    )


def test_missing_records_of_a_batch_are_found() -> None:
    """
    With Kafka's error message, as in a dump.
    """
    data = batch(0, 1)
    data[60] = 3
    seal(data)

    (found,) = check(Files(data))

    assert ("record-format", "Incorrect declared batch size, premature EOF reached") == (
        found.rule,
        found.found,
    )


def test_record_offsets_outside_their_batch_are_found() -> None:
    """
    Kafka stores such a batch of a producer unchanged.
    """
    data = batch(0, 3)
    data[26] = 1
    seal(data)

    (violation,) = check(Files(data))

    assert ("warning", "record-offsets") == (violation.severity.value, violation.rule)


def test_decreasing_record_offsets_are_found() -> None:
    data = batch(0, 2, 1)
    data[26] = 2
    seal(data)

    assert ["record-offsets"] == rules(Files(data))


def test_producer_batch_without_a_sequence_is_found() -> None:
    data = batch(0, producer_id=5, producer_epoch=0, base_sequence=0)
    data[53:57] = b"\xff\xff\xff\xff"
    seal(data)

    assert ["batch-producer"] == rules(Files(data))


# Control batches.


def control(
    *records: tuple[bytes, bytes], base_sequence: int = -1, producer_id: int = 5
) -> bytearray:
    """
    A control batch of these keys and values.
    """
    data = build_batch_with_offsets(
        [Record(at, FIRST_TIMESTAMP, *pair) for at, pair in enumerate(records)],
        base_offset=0,
        partition_leader_epoch=0,
        producer_id=producer_id,
        producer_epoch=0 if producer_id >= 0 else -1,
        base_sequence=base_sequence,
    )
    data[22] |= 0x20 | (0x10 if producer_id >= 0 else 0)
    seal(data)
    return data


COMMIT = b"\0\0\0\1", b"\0\0\0\0\0\0"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (control(COMMIT), []),
        (control(COMMIT, base_sequence=0), ["batch-producer"]),
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


def test_control_batch_emptied_by_compaction_is_accepted() -> None:
    data = control(COMMIT)[:61]
    data[8:12] = (61 - 12).to_bytes(4, "big")
    data[57:61] = bytes(4)
    seal(data)

    assert [] == rules(Files(data))


# Segments.


def test_batch_behind_a_gap_is_found_unless_the_log_was_compacted() -> None:
    files = Files(batch(0), batch(2))

    assert ["offset-gap"] == rules(files)
    assert [] == rules(files, LogContext(state=DirectoryState.CLEAN, may_be_compacted=True))


def test_batch_with_removed_records_shows_that_the_log_was_compacted() -> None:
    """
    Whatever the current settings of the topic are.
    """
    assert [] == check(Files(batch(0, 2), batch(5)))


def test_decreasing_batch_offsets_are_found() -> None:
    files = Files(batch(0, 1), batch(1), batch(2))

    (violation,) = check(files)

    assert ("batch-offsets", 1) == (violation.rule, violation.offset)


def test_offsets_below_the_base_offset_are_found() -> None:
    assert ["batch-offsets"] == rules(Files(batch(4), batch(5), base_offset=5))


def test_offsets_too_far_from_the_base_offset_are_found() -> None:
    far = batch(2**31)
    assert "batch-offsets" in rules(
        Files(far), LogContext(state=DirectoryState.CLEAN, may_be_compacted=True)
    )


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

    assert [] == rules(files, LogContext(state=DirectoryState.CLEAN, may_be_compacted=True))


def test_verification_resumes_behind_damage_at_an_index_entry() -> None:
    """
    Otherwise everything behind a batch with a wrong length would go unchecked.
    """
    home = LogHome(segment_bytes=100_000, index_interval_bytes=150)
    log = home.open()
    append(log, 20)
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
    report = Report(told.append)

    partition = PartitionDirectory(DIRECTORY, Files(*batches))
    PartitionCheck(partition, CLEAN, report, StillClock()).run()

    crcs = [each for each in told if each.rule == "batch-crc"]
    assert MOST_ALIKE == len(crcs)
    assert {("batch-crc", LOG): 20 - MOST_ALIKE} == report.untold
    assert report.errors >= 20


# After a crash.


def crashed(recovery_point: int = 0) -> LogContext:
    return LogContext(
        state=DirectoryState.CRASHED, recovery_point=recovery_point, may_be_compacted=False
    )


@pytest.mark.parametrize(
    ("recovery_point", "expected"),
    [(0, {"batch-crc": "warning"}), (2, {"batch-crc": "error"}), (1, {"batch-crc": "warning"})],
)
def test_damage_that_the_next_start_repairs_is_a_warning(
    recovery_point: int, expected: dict[str, str]
) -> None:
    damaged = batch(1)
    damaged[-1] ^= 1
    files = Files(batch(0), damaged)
    files.segment(2, batch(2))

    found = {each.rule: each.severity.value for each in check(files, crashed(recovery_point))}

    assert expected == found


def test_missing_flushed_data_after_a_crash_is_an_error() -> None:
    """
    Even though the next start truncates the end.
    """
    damaged = batch(1)
    damaged[-1] ^= 1

    found = {each.rule: each.severity.value for each in check(Files(batch(0), damaged), crashed(2))}

    assert {"batch-crc": "warning", "recovery-point": "error"} == found


def test_zeros_behind_the_last_batch_are_accepted_with_preallocation() -> None:
    files = Files(batch(0))
    files.open(LOG).append(bytes(500))

    assert ["zero-tail"] == rules(files, crashed())
    preallocated = LogContext(
        state=DirectoryState.CRASHED, recovery_point=0, may_be_compacted=False, preallocate=True
    )
    assert [] == rules(files, preallocated)


# Producers and transactions.


def sent(
    offset: int, sequence: int, *, epoch: int = 0, producer_id: int = 5, **more: Any
) -> bytearray:
    return batch(
        offset, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, **more
    )


@pytest.mark.parametrize(
    ("batches", "expected"),
    [
        ([sent(0, 0), sent(1, 1)], []),
        ([sent(0, 7), sent(1, 8)], []),
        ([sent(0, 2**31 - 1), sent(1, 0)], []),
        ([sent(0, 0), sent(1, 2)], ["producer-sequence"]),
        ([sent(0, 0), sent(1, 0)], ["producer-sequence"]),
        ([sent(0, 0), sent(1, 0, epoch=1)], []),
        ([sent(0, 0), sent(1, 1, epoch=1)], ["producer-sequence"]),
        ([sent(0, 0, epoch=1), sent(1, 1)], ["producer-epoch"]),
        ([sent(0, 0), sent(1, 0, producer_id=6), sent(2, 1)], []),
    ],
)
def test_sequences_of_a_producer_must_be_consecutive(
    batches: Sequence[bytearray], expected: list[str]
) -> None:
    assert expected == rules(Files(*batches))


def test_sequence_gaps_from_compaction_are_accepted() -> None:
    context = LogContext(state=DirectoryState.CLEAN, may_be_compacted=True)

    assert [] == rules(Files(sent(0, 0), sent(2, 2), sent(4, 0, epoch=2)), context)


def test_nontransactional_batch_within_a_transaction_of_its_producer_is_found() -> None:
    files = Files(sent(0, 0, is_transactional=True), sent(1, 1))

    assert ["txn-state"] == rules(files)


def transaction_log() -> LogHome:
    """
    Two transactions that are aborted, and one of another producer that goes on.
    """
    home = LogHome()
    log = home.open()
    for producer_id in (7, 8):
        produce(
            log,
            b"v",
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=0,
            is_transactional=True,
        )
    end_transaction(log, 7, commit=False)
    produce(log, b"v", producer_id=7, producer_epoch=0, base_sequence=1, is_transactional=True)
    end_transaction(log, 7, commit=False)
    log.update_high_watermark(log.log_end_offset)
    home.stop(log)
    return home


def test_transactions_that_match_their_index_are_accepted() -> None:
    assert [] == check(transaction_log().files)


@pytest.mark.parametrize(
    ("position", "value", "rule"),
    [
        (9, 9, "txn-index-entry"),  # the producer
        (17, 1, "txn-index-entry"),  # the first offset
        (33, 5, "txn-index-entry"),  # the last stable offset: the other transaction begins at 1
        (25, 1, "txn-index-entry"),  # the last offset: there is no marker
    ],
)
def test_index_entry_that_does_not_match_its_marker_is_found(
    position: int, value: int, rule: str
) -> None:
    home = transaction_log()
    assert value != home.file(0, ".txnindex")[position]
    home.file(0, ".txnindex")[position] = value

    assert rule in rules(home.files)


def test_transaction_index_entry_out_of_order_is_reported_once() -> None:
    """
    It is not reported as a missing entry too, as it may belong to any marker.
    """
    home = transaction_log()
    home.file(0, ".txnindex")[59] = 2

    assert ["txn-index-order"] == rules(home.files)


def test_aborted_transaction_without_an_index_entry_is_found() -> None:
    home = transaction_log()
    del home.file(0, ".txnindex")[34:]

    (violation,) = check(home.files)

    assert ("txn-index-complete", 4) == (violation.rule, violation.offset)


# Snapshots.


def snapshot_of(entry: ProducerStateEntry, offset: int, *batches: bytearray) -> Files:
    files = Files(*batches)
    path = DIRECTORY / f"{offset:020d}.snapshot"
    files.open(path).append(encode_snapshot([entry]))
    return files


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
    files = snapshot_of(state(**changed), 1, sent(0, 0), sent(1, 1))

    assert ([] if is_fine else ["snapshot-producer"]) == rules(files)


def test_producer_snapshot_may_lack_a_producer_but_not_its_open_transaction() -> None:
    files = Files(sent(0, 0))
    files.open(DIRECTORY / f"{1:020d}.snapshot").append(encode_snapshot([]))
    assert [] == check(files)

    files = Files(sent(0, 0, is_transactional=True))
    files.open(DIRECTORY / f"{1:020d}.snapshot").append(encode_snapshot([]))
    assert ["snapshot-producer"] == rules(files)


def test_producer_snapshot_may_have_producers_whose_records_were_deleted() -> None:
    files = Files(batch(9), base_offset=9)
    files.open(DIRECTORY / f"{10:020d}.snapshot").append(encode_snapshot([state(offset=3)]))

    assert [] == check(files)


def test_producer_snapshot_before_the_first_segment_is_trusted() -> None:
    """
    It is the only evidence of a transaction begun in deleted segments.
    """
    entry = state(offset=3, transaction=3)
    files = Files(sent(9, 5), base_offset=9)
    files.open(DIRECTORY / f"{9:020d}.snapshot").append(encode_snapshot([entry]))

    assert ["producer-sequence", "txn-state"] == rules(files)


def test_producer_snapshot_beyond_the_log_end_is_found() -> None:
    assert ["snapshot-end"] == rules(snapshot_of(state(), 3, sent(0, 0)))


def test_whole_directory_and_its_single_logs_have_no_violations() -> None:
    """
    The logs that other tests damage, each checked alone.
    """
    files = sound_directory()
    for name in some(files.names(Path("/data"))):
        if files.is_directory(Path("/data") / name):
            partition = PartitionDirectory(Path("/data") / name, files)
            told: list[Violation] = []
            PartitionCheck(partition, LogContext(), Report(told.append), StillClock()).run()
            assert [] == told


def test_log_of_padded_batches_is_accepted() -> None:
    """
    The storage tests use such batches.
    """
    assert [] == check(Files(*(padded_batch(at) for at in range(5))))
