from __future__ import annotations

from typing import Any

import pytest

from barnabas.protocol.errors import OffsetOutOfRange
from barnabas.protocol.records.batch import batches, build_batch
from barnabas.protocol.records.record import SimpleRecord
from barnabas.storage.log.fetch_isolation import FetchIsolation
from barnabas.storage.log.leader_epochs import OffsetAndEpoch
from barnabas.storage.log.log import Log
from barnabas.storage.log.watermarks import LogStartOffsetIncrementReason
from barnabas.storage.segment.records import TimestampAndOffset
from tests.support.logs import LogHome, append, end_transaction, log_of, produce
from tests.support.segments import FIRST_TIMESTAMP

LOG_END, HIGH_WATERMARK, COMMITTED = FetchIsolation


def log_with(count: int = 5, **config: Any) -> Log:
    _, log = log_of(count, **config)
    return log


@pytest.mark.scenario(32)
def test_read_begins_with_the_batch_that_holds_the_offset() -> None:
    log = LogHome().open(log_start_offset=100)
    produce(log, b"a", b"b", b"c")

    info = log.read(101, 1000, LOG_END, True)

    place = info.fetch_offset_metadata
    assert (100, 0) == (place.message_offset, place.relative_position_in_segment)
    assert info.records is not None
    assert [100] == [batch.base_offset for batch in batches(info.records.read())]


@pytest.mark.scenario(33)
def test_read_outside_the_log_is_an_error_but_not_at_the_log_end_offset() -> None:
    log = log_with(5)
    log.maybe_increment_log_start_offset(2, LogStartOffsetIncrementReason.CLIENT_RECORD_DELETION)

    assert None is log.read(5, 1000, HIGH_WATERMARK, True).records
    for offset in (6, 1, -1):
        with pytest.raises(OffsetOutOfRange, match=rf"offset {offset} .* upto 5 "):
            log.read(offset, 1000, HIGH_WATERMARK, True)


@pytest.mark.scenario(34)
@pytest.mark.parametrize(
    ("asked", "expected"),
    [(40, (100, 0)), (101, (200, 2)), (200, (200, 2)), (201, (300, 5)), (301, None)],
)
@pytest.mark.parametrize("interval", [0, 4096])
def test_timestamp_lookup_finds_the_first_record_not_older(
    asked: int, expected: tuple[int, int] | None, interval: int
) -> None:
    log = LogHome(index_interval_bytes=interval).open()
    for timestamp in (100, 50, 200, 150, 200, 300):
        append(log, timestamp=timestamp)

    found = log.fetch_offset_by_timestamp(asked)

    assert expected == (None if found is None else found[:2])


@pytest.mark.scenario(35)
@pytest.mark.parametrize("asked", [255, -3])
def test_timestamp_lookup_finds_the_record_within_its_batch(asked: int) -> None:
    log = LogHome(index_interval_bytes=0).open(log_start_offset=100)
    append_times(log, 100, 300, 300)
    append_times(log, 250, 260)

    assert TimestampAndOffset(300, 101, 0) == log.fetch_offset_by_timestamp(asked)


def append_times(log: Log, *timestamps: int) -> None:
    records = [SimpleRecord(timestamp, b"k", b"v") for timestamp in timestamps]
    log.append_as_leader(memoryview(build_batch(records)), 0)
    log.update_high_watermark(log.log_end_offset)


@pytest.mark.scenario(37)
def test_earliest_offset_is_the_log_start_offset_after_delete_records() -> None:
    log = log_with(10)
    log.assign_epoch_start_offset(3, 10)

    assert 7 == log.delete_records(7)

    assert TimestampAndOffset(-1, 7, 0) == log.fetch_offset_by_timestamp(-2)


def test_leader_epoch_of_the_earliest_offset_may_be_unknown() -> None:
    log = LogHome().open()
    assert TimestampAndOffset(-1, 0, None) == log.fetch_offset_by_timestamp(-2)


@pytest.mark.scenario(38)
def test_tiered_storage_offsets_are_unknown() -> None:
    log = log_with(3)

    assert log.fetch_offset_by_timestamp(-2) == log.fetch_offset_by_timestamp(-4)
    assert TimestampAndOffset(-1, -1, -1) == log.fetch_offset_by_timestamp(-5)
    assert TimestampAndOffset(-1, -1, -1) == log.fetch_offset_by_timestamp(-6)


def test_latest_offset_is_the_log_end_offset_with_its_leader_epoch() -> None:
    assert TimestampAndOffset(-1, 3, 0) == log_with(3).fetch_offset_by_timestamp(-1)


def test_empty_log_has_no_max_timestamp() -> None:
    log = LogHome().open()

    assert None is log.fetch_offset_by_timestamp(-3)
    assert None is log.largest_record_timestamp()


def test_max_timestamp_is_that_of_the_first_segment_that_has_it() -> None:
    log = LogHome(segment_bytes=300).open()
    for timestamp in (5, 9, 9, 7):
        append(log, timestamp=timestamp)

    assert TimestampAndOffset(9, 1, 0) == log.fetch_offset_by_timestamp(-3)
    assert 9 == log.largest_record_timestamp()


def test_max_timestamp_may_lie_below_the_log_start_offset() -> None:
    """
    As in Kafka, which examines whole segments.
    """
    log = log_with(5)
    log.delete_records(5)

    found = log.fetch_offset_by_timestamp(-3)

    assert (FIRST_TIMESTAMP + 4, 4) == (found and found[:2])
    assert None is log.fetch_offset_by_timestamp(FIRST_TIMESTAMP)


@pytest.mark.parametrize(
    ("offset", "isolation", "size"),
    [
        (0, HIGH_WATERMARK, 600),
        (2, HIGH_WATERMARK, 300),
        (4, HIGH_WATERMARK, 0),
        (5, HIGH_WATERMARK, 0),
        (4, LOG_END, 300),
        (6, LOG_END, 150),
    ],
)
def test_read_ends_with_its_segment_or_at_its_isolation_bound(
    offset: int, isolation: FetchIsolation, size: int
) -> None:
    log = log_with(7, segment_bytes=1000)
    log.update_high_watermark(4)

    info = log.read(offset, 10000, isolation, True)

    assert offset == info.fetch_offset
    assert size == (0 if info.records is None else info.records.size)


def test_leader_epoch_end_offsets_are_returned() -> None:
    log = log_with(3)
    log.assign_epoch_start_offset(2, 3)
    append(log, 2, leader_epoch=2)

    ends = [log.end_offset_for_epoch(epoch) for epoch in range(4)]

    assert [OffsetAndEpoch(3, 0)] * 2 + [OffsetAndEpoch(5, 2), None] == ends
    assert None is LogHome().open().end_offset_for_epoch(0)


@pytest.mark.scenario(45)
@pytest.mark.parametrize("interval", [0, 4096])
def test_read_committed_fetch_returns_the_aborted_transactions_of_its_range(interval: int) -> None:
    log = log_with(4, index_interval_bytes=interval)
    produce(log, b"x", producer_id=9, producer_epoch=0, base_sequence=0, is_transactional=True)
    end_transaction(log, 9, commit=False)
    append(log, 4)

    for offset, expected in ((0, [(9, 4)]), (5, [(9, 4)]), (6, [])):
        info = log.read(offset, 10000, COMMITTED, True)
        assert expected == info.aborted_transactions
    assert None is log.read(0, 10000, HIGH_WATERMARK, True).aborted_transactions


def test_aborted_transaction_behind_the_returned_bytes_is_not_reported() -> None:
    log = log_with(4, index_interval_bytes=0, segment_bytes=1000)
    produce(log, b"x", producer_id=9, producer_epoch=0, base_sequence=0, is_transactional=True)
    end_transaction(log, 9, commit=False)
    append(log, 10)

    assert [] == log.read(0, 300, COMMITTED, True).aborted_transactions
    assert [(9, 4)] == log.read(0, 601, COMMITTED, True).aborted_transactions
