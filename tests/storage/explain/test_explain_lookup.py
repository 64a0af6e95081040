from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from barnabas.protocol.compression import CompressionType
from barnabas.storage.explain.known import ExplainError
from barnabas.storage.explain.lookup import find_offset, find_time
from barnabas.storage.explain.report import (
    PartitionReport,
    report_on_offset,
    report_on_segment,
    report_on_time,
)
from barnabas.storage.explain.wording.lookup import offset_sentences, time_sentences
from barnabas.storage.explain.wording.record import record_words
from barnabas.storage.log.fetch_isolation import FetchIsolation
from tests.support.bombs import bomb, memory_below
from tests.support.explaining import look_at
from tests.support.limits import stated
from tests.support.logs import (
    LogHome,
    append,
    append_with_offsets,
    bases,
    begin_transaction,
    end_transaction,
    produce,
)
from tests.support.segments import FIRST_TIMESTAMP, padded_batch

TIMES = [0, 50, 20, 90, 90, 10, 70, 120, 110, 100]


def mixed() -> LogHome:
    """
    Forty batches in segments of ten, in no order of time.
    """
    home = LogHome(segment_bytes=1500, index_interval_bytes=300)
    log = home.open()
    for number in range(40):
        append(log, timestamp=FIRST_TIMESTAMP + number // 10 * 100 + TIMES[number % 10])
    return home


def told(report: PartitionReport) -> str:
    return " ".join(record_words(report))


def test_offset_lookup_finds_where_a_fetch_begins() -> None:
    log = look_at(mixed()).opened.log

    for offset in range(40):
        path = find_offset(log, offset)
        place = log.read(offset, 1, FetchIsolation.LOG_END, True).fetch_offset_metadata
        assert path is not None
        assert path.segment.base_offset == place.segment_base_offset
        assert path.position == place.relative_position_in_segment
        assert path.position == path.index.position + 150 * (path.scanned_batches - 1)


def test_time_lookup_agrees_with_list_offsets() -> None:
    log = look_at(mixed()).opened.log

    for milliseconds in range(-1, 430):
        timestamp = FIRST_TIMESTAMP + milliseconds
        path = find_time(log, timestamp)
        assert log.fetch_offset_by_timestamp(timestamp) == (None if path is None else path.found)


def test_steps_of_an_offset_lookup_are_reported() -> None:
    report = report_on_offset(look_at(mixed()), 17)
    assert report.offset_path is not None
    assert report.record is not None

    assert [
        "Segment 10 has it: no later segment begins at this offset or below.",
        "Its offset index has 3 entries; entry 1, the last one up to offset 17, is of offset 16:"
        " the scan begins at byte 900.",
        "The scan reads 2 batches; the last one, at byte 1,050, has offset 17 in 150 bytes.",
    ] == offset_sentences(report.offset_path, report.record)
    assert (
        "A record of 2023-11-14T22:13:20.220Z, 220 ms from now. It has no key and a value of"
        " 80 bytes. Its batch has 1 record, not compressed, in leader epoch 0."
    ) == told(report)


def test_steps_of_a_time_lookup_are_reported() -> None:
    report = report_on_time(look_at(mixed()), FIRST_TIMESTAMP + 215)
    assert report.time_path is not None

    assert [
        "Segment 10 is the first one with a record of 2023-11-14T22:13:20.215Z or later: its"
        " latest record is of 2023-11-14T22:13:20.220Z.",
        "Its time index has 2 entries; entry 0, the last one that is not later, is of"
        " 2023-11-14T22:13:20.190Z and gives offset 13.",
        "Its offset index has 3 entries; entry 0, the last one up to offset 13, is of offset 13:"
        " the scan begins at byte 450.",
        "Batch 5 from there on has the first record that is not earlier: offset 17, of"
        " 2023-11-14T22:13:20.220Z.",
    ] == time_sentences(report.time_path)
    assert report.chosen is not None
    assert report.offset_path is not None
    assert (17, 10) == (report.offset_path.offset, report.chosen.segment.base_offset)


@pytest.mark.parametrize(
    ("look", "sentence"),
    [
        (
            partial(report_on_offset, offset=40),
            "Offset 40 is out of range: t-0 has offsets 0 to 39",
        ),
        (
            partial(report_on_offset, offset=-1),
            "Offset -1 is out of range: t-0 has offsets 0 to 39",
        ),
        (partial(report_on_segment, base_offset=15), "that offset is in segment 10"),
        (partial(report_on_segment, base_offset=99), "these do: 0, 10, 20, 30"),
        (
            partial(report_on_time, timestamp=FIRST_TIMESTAMP + 421),
            r"the latest is of 2023-11-14T22:13:20.420Z",
        ),
    ],
)
def test_lookup_outside_the_log_names_what_is_there(
    look: Callable[[PartitionReport], object], sentence: str
) -> None:
    with pytest.raises(ExplainError, match=sentence):
        look(look_at(mixed()))


def test_lookup_in_an_empty_log_reports_that_there_are_no_records() -> None:
    home = LogHome()
    home.open()

    with pytest.raises(ExplainError, match="has no records; the next one gets offset 0"):
        report_on_offset(look_at(home), 0)
    with pytest.raises(ExplainError, match="no record has a timestamp"):
        report_on_time(look_at(home), 2**50)


def test_offsets_below_the_log_start_offset_are_reported_as_unreadable() -> None:
    home = mixed()
    home.write_checkpoint("log-start-offset-checkpoint", 5)

    report = report_on_offset(look_at(home), 4)

    assert "It cannot be read: the log start offset is 5." in told(report)
    assert "cannot be read" not in told(report_on_offset(look_at(home), 5))


def test_compacted_offset_leads_to_the_next_record() -> None:
    home = LogHome(cleanup_policy=("compact",), segment_bytes=500)
    log = home.open()
    for offset in (0, 1, 3, 20):
        append_with_offsets(log, memoryview(bytearray(padded_batch(offset))))
    assert [0, 20] == bases(log)

    between, behind = report_on_offset(look_at(home), 2), report_on_offset(look_at(home), 9)

    assert between.offset_path is not None
    assert between.record is not None
    assert behind.offset_path is not None
    assert behind.record is not None
    assert (
        "Compaction has removed offset 2: a fetch from there returns this batch."
    ) == offset_sentences(between.offset_path, between.record)[-1]
    assert (
        "Compaction has removed it and the rest of its segment (1 segment skipped), so the fetch"
        " continues in segment 20."
    ) == offset_sentences(behind.offset_path, behind.record)[0]


def keyed(home: LogHome) -> PartitionReport:
    log = home.open()
    produce(log, b"1")
    produce(log, b"2")
    produce(log, b"3")
    return look_at(home)


def test_later_record_of_the_key_is_reported_if_a_cleaning_would_see_it() -> None:
    """
    Not before the active segment has rolled.
    """
    active = keyed(LogHome(cleanup_policy=("compact",)))
    ended = keyed(LogHome(cleanup_policy=("compact",), segment_bytes=100))
    uncompacted = told(report_on_offset(keyed(LogHome()), 0))

    assert (
        "Its key has 2 later records, the last one a value at offset 2: a cleaning removes this"
        " one, but the next one does not read that far."
    ) in told(report_on_offset(active, 0))
    assert "the next cleaning removes this one" in told(report_on_offset(ended, 0))
    assert "It is the latest record of its key" in told(report_on_offset(ended, 2))
    assert 'It has the key "k" and a value of 1 byte.' in uncompacted
    assert "compaction" not in uncompacted
    assert "cleaning" not in uncompacted


def test_a_marker_does_not_end_the_search_for_later_values_of_a_key() -> None:
    home = LogHome(cleanup_policy=("compact",))
    log = home.open()
    produce(log, b"1")
    begin_transaction(log, 7)
    end_transaction(log, 7, commit=True)
    produce(log, b"2")

    words = told(report_on_offset(look_at(home), 0))

    assert "Its key has 2 later records, the last one a value at offset 3" in words


@pytest.mark.parametrize("codec", [codec for codec in CompressionType if codec])
def test_undecompressable_batch_is_reported_within_bounded_memory(
    codec: CompressionType,
) -> None:
    home = LogHome(cleanup_policy=("compact",))
    log = home.open()
    produce(log, b"1")
    append_with_offsets(log, memoryview(bomb(codec, base_offset=1)))
    produce(log, b"2")
    report = look_at(home)

    with memory_below(3 * int(stated("decompressed"))):
        before, inside = (told(report_on_offset(report, offset)) for offset in (0, 1))

    assert (
        "1 batch behind it cannot be read. According to the others: Its key has a later record, a"
        " value at offset 2"
    ) in before
    assert "Its batch cannot be read: " in inside


def test_transactions_of_records_are_reported() -> None:
    home = LogHome()
    log = home.open()
    for producer_id, commit in ((7, False), (8, True)):
        begin_transaction(log, producer_id)
        end_transaction(log, producer_id, commit=commit)
    begin_transaction(log, 9)
    home.stop(log)
    report = look_at(home)

    aborted, marker, committed, undecided = (
        told(report_on_offset(report, offset)) for offset in (0, 1, 2, 4)
    )

    assert "of a transaction of producer 7 (epoch 0) from sequence 0 on" in aborted
    assert "Its transaction was aborted" in aborted
    assert "A control record, ABORT" in marker
    assert "aborted" not in marker
    assert "aborted" not in committed
    assert "not below the last stable offset" not in committed
    assert "It is not below the last stable offset" in undecided


def test_open_transaction_is_reported_without_a_producer_snapshot() -> None:
    """
    The broker is running and has not rolled yet.
    """
    home = LogHome()
    log = home.open()
    produce(log, b"v")
    begin_transaction(log, 9)
    assert not [name for name in home.names() if name.endswith(".snapshot")]

    report = look_at(home)

    assert 1 == report.opened.log.last_stable_offset
    assert "It is not below the last stable offset" in told(report_on_offset(report, 1))


def test_record_older_than_retention_stays_while_its_segment_has_a_later_one() -> None:
    home = LogHome(retention_ms=1000)
    log = home.open()
    for milliseconds in (0, 900):
        append(log, timestamp=FIRST_TIMESTAMP + milliseconds)
    home.clock.advance(1001)

    old, young = (told(report_on_offset(look_at(home), offset)) for offset in (0, 1))

    sentence = "It is older than retention.ms, but a segment is deleted as a whole"
    assert sentence in old
    assert sentence not in young
