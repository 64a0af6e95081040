from __future__ import annotations

import threading

import pytest

from barnabas.storage.fs.interface import WouldBlock
from barnabas.storage.log.log import Log
from barnabas.storage.log.watermarks import Watermarks
from barnabas.storage.segment.offset_metadata import LogOffsetMetadata
from tests.support.logs import append, log_of, produce


def watermarks(log: Log, *, start: int = 0, high_watermark: int = 0) -> Watermarks:
    """
    Those of a log that was just opened.
    """
    return Watermarks(
        log._local,
        log.producers,
        threading.RLock(),
        log_start_offset=start,
        high_watermark=high_watermark,
    )


@pytest.fixture
def log() -> Log:
    _, log = log_of(10, segment_bytes=1000)
    return log


@pytest.mark.parametrize(("noted", "expected"), [(0, 2), (5, 5), (10, 10), (99, 10)])
def test_high_watermark_checkpoint_is_bounded_by_the_log(
    log: Log, noted: int, expected: int
) -> None:
    assert expected == watermarks(log, start=2, high_watermark=noted).high_watermark


def test_position_of_the_high_watermark_is_looked_up_once(log: Log) -> None:
    marks = watermarks(log, high_watermark=7)

    assert LogOffsetMetadata(7, 6, 150) == marks.fetch_high_watermark_metadata()
    assert marks.fetch_high_watermark_metadata() is marks.fetch_high_watermark_metadata()


def test_nonblocking_lookup_of_the_high_watermark_changes_nothing() -> None:
    home, log = log_of(10, segment_bytes=1000)
    marks = watermarks(log, high_watermark=7)
    home.files.is_cold = True

    with pytest.raises(WouldBlock):
        marks.fetch_high_watermark_metadata(nowait=True)
    home.files.is_cold = False
    assert LogOffsetMetadata(7, 6, 150) == marks.fetch_high_watermark_metadata(nowait=True)


@pytest.mark.parametrize(
    ("high_watermark", "expected"),
    [(12, LogOffsetMetadata(10, 6, 600)), (4, LogOffsetMetadata(4, 0, 600))],
    ids=["above an open transaction", "below an open transaction"],
)
def test_last_stable_offset_is_the_high_watermark_or_the_start_of_a_transaction(
    log: Log, high_watermark: int, expected: LogOffsetMetadata
) -> None:
    produce(log, b"v", producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=True)
    append(log)
    marks = watermarks(log, high_watermark=high_watermark)

    assert expected.message_offset == marks.last_stable_offset
    assert expected == marks.fetch_last_stable_offset_metadata()


def test_position_of_a_transaction_opened_before_a_restart_is_looked_up() -> None:
    home, log = log_of(3, segment_bytes=1000)
    produce(log, b"v", producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=True)
    append(log, 8)
    home.stop(log)

    log = home.open()

    info = log._watermarks.fetch_last_stable_offset_metadata()
    assert LogOffsetMetadata(3, 0, 450) == info


def test_new_log_start_offset_raises_high_watermark_and_recovery_point(log: Log) -> None:
    marks = watermarks(log, high_watermark=4)
    log._local.recovery_point = 1

    marks.start_at(6)

    assert (6, 6, 6) == (marks.log_start_offset, marks.high_watermark, marks.last_stable_offset)
    assert 6 == log.recovery_point


def test_decrease_of_the_high_watermark_is_reported(
    log: Log, caplog: pytest.LogCaptureFixture
) -> None:
    watermarks(log, high_watermark=9).update_high_watermark(3)

    assert "non-monotonic update of high watermark" in caplog.text
