from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from barnabas.pipeline.jobs.report.facts import (
    BatchCounts,
    Disorder,
    KeyCounts,
    Life,
    PartitionFacts,
    Pin,
    Producers,
    Report,
)
from barnabas.pipeline.jobs.report.frames import partitions_frame, segments_frame
from barnabas.storage.explain.logs import ReadOnlyLogs
from barnabas.storage.explain.report import report_on
from barnabas.storage.fs.disk import DiskFiles
from barnabas.storage.readonly.log_root import LogRoot
from tests.pipeline.report.conftest import CHECK_MS, HOUR, NOW, RETENTION_MS, cluster
from tests.support.clock import StillClock
from tests.support.segments import FIRST_TIMESTAMP
from tests.support.some import some

pytestmark = [pytest.mark.spark, pytest.mark.prove]


def facts_of(report: Report, name: str) -> PartitionFacts:
    return next(facts for facts in report.partitions if str(facts.partition) == name)


def test_report_covers_all_partitions_in_order(report: Report) -> None:
    names = [str(facts.partition) for facts in report.partitions]

    assert ["empty-0", "keys-0", "producers-0", "times-0", "times-1"] == names


def test_headers_are_counted(report: Report, logs: Path) -> None:
    for partition in some(LogRoot(logs, DiskFiles()).partitions):
        facts = facts_of(report, str(partition.topic_partition))
        counts, codecs, fill = BatchCounts(), Counter[str](), Counter[int]()
        for segment in partition.segments:
            for _, batch in segment.batches():
                codec = batch.compression.name.lower()
                counts.batches += 1
                counts.records += batch.record_count
                counts.size += batch.size
                codecs[codec] += batch.size
                fill[batch.record_count.bit_length() - 1] += 1

        found = facts.counts
        assert (counts.batches, counts.records) == (found.batches, found.records)
        assert counts.size == found.size == facts.size
        assert codecs == found.codecs
        assert fill == found.fill


def test_records_out_of_timestamp_order_are_counted(report: Report) -> None:
    """
    A batch counts if its first record is older than one of an earlier batch; each record counts
    that is older than an earlier one.
    """
    facts = facts_of(report, "times-0")
    counts = facts.counts

    assert FIRST_TIMESTAMP == counts.first_ms
    assert FIRST_TIMESTAMP + int(7.5 * HOUR) == counts.last_ms
    assert 2 == counts.late_batches
    assert 4 * HOUR == counts.most_late_ms
    assert Disorder(4, 4 * HOUR) == facts.disorder
    assert Disorder(0, 0) == facts_of(report, "keys-0").disorder


def test_missing_offsets_are_counted(report: Report) -> None:
    """
    Two offsets in front of 20, and seven in front of 30.
    """
    counts = facts_of(report, "producers-0").counts

    assert (2, 9) == (counts.gaps, counts.missing_offsets)
    assert 0 == facts_of(report, "times-0").counts.gaps


def test_repeated_and_missing_sequences_are_counted(report: Report) -> None:
    """
    Sequence 3 is repeated in the first epoch and 0 in the second; 6 to 9 are missing. A new epoch
    starts again at 0, and producers without an id have no sequences.
    """
    expected = Producers(
        producers=2,
        unprotected_records=4,
        repeated_batches=2,
        repeated_records=6,
        sequence_gaps=1,
        worst_producer_id=7,
    )

    assert expected == facts_of(report, "producers-0").producers


def test_empty_key_counts_as_a_key_and_null_does_not(report: Report) -> None:
    expected = KeyCounts(13, 3, 3, ((b"often", 7), (b"", 2), (b"\xff\x00", 1)))

    assert expected == facts_of(report, "keys-0").keys


def test_segment_waiting_for_an_older_one_has_its_due_time(report: Report) -> None:
    """
    The latest record of the first segment is of hour 5, so the segment is due 1 ms after hour 9.
    The second one is four hours older, and is deleted no sooner.
    """
    first, second, active = facts_of(report, "times-0").segments
    goes = 9 * HOUR + 1

    assert [Pin.AGE, Pin.OLDER_SEGMENT, Pin.ACTIVE] == [first.pin, second.pin, active.pin]
    assert 0 == second.lifetime.due_with
    assert Life(goes - 5 * HOUR, goes + CHECK_MS) == first.life
    assert Life(goes - 2 * HOUR, goes + CHECK_MS - 1 * HOUR) == second.life


def test_future_timestamp_keeps_its_segment_and_the_next(report: Report) -> None:
    first, second = facts_of(report, "times-1").segments

    assert [Pin.FUTURE, Pin.OLDER_SEGMENT] == [first.pin, second.pin]
    assert RETENTION_MS + 1 == first.life.shortest_ms
    assert 21 * HOUR + 1 == second.life.shortest_ms


def test_expired_records_go_with_the_next_check(report: Report) -> None:
    (segment,) = facts_of(report, "keys-0").segments

    assert Pin.NOTHING == segment.pin
    assert Life(7 * HOUR, 7 * HOUR + CHECK_MS) == segment.life


def test_empty_log_has_a_segment_without_lifetime(report: Report) -> None:
    facts = facts_of(report, "empty-0")

    assert [Pin.EMPTY] == [segment.pin for segment in facts.segments]
    assert Life(None, None) == facts.life
    assert BatchCounts() == facts.counts


def test_segment_due_times_equal_those_of_explain(report: Report, logs: Path) -> None:
    read_only = ReadOnlyLogs(cluster(logs), DiskFiles(), StillClock(NOW))
    for facts in some(report.partitions):
        explained = report_on(read_only.open(facts.partition), cluster(logs).times, NOW)

        assert [each.lifetime for each in explained.segments] == [
            segment.lifetime for segment in facts.segments
        ]


def test_rows_equal_the_frames(spark: SparkSession, report: Report) -> None:
    partitions = {
        (row.topic, row.partition): row for row in partitions_frame(spark, report).collect()
    }
    segments = segments_frame(spark, report)

    assert 5 == len(partitions)
    keys = partitions["keys", 0]
    assert (13, 3, b"often") == (keys.records, keys.distinctKeys, bytes(keys.topKey))
    assert {"gzip", "none"} == set(keys.codecs)
    assert 6 == partitions["producers", 0].repeatedRecords
    waiting = segments.filter("dependsOn < baseOffset and topic = 'times' and partition = 0")
    (row,) = waiting.selectExpr("baseOffset", "unix_millis(unreadableEarliest) as ms").collect()
    assert (2, FIRST_TIMESTAMP + 9 * HOUR + 1) == (row.baseOffset, row.ms)
