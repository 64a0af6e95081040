"""
A report as rows of Spark.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from barnabas.pipeline.jobs.report.facts import PartitionFacts, Report, SegmentFacts
from barnabas.pipeline.jobs.report.history import History

PARTITIONS: Final = (
    "topic string, partition int, segments int, size long, batches long, records long,"
    " recordsPerBatch double, codecs map<string, long>, firstTimestamp timestamp,"
    " lastTimestamp timestamp, lateBatches long, lateRecords long, mostLateMs long, gaps long,"
    " missingOffsets long,"
    " producers long, unprotectedRecords long, repeatedBatches long, repeatedRecords long,"
    " sequenceGaps long, distinctKeys long, recordsWithoutKey long, topKey binary,"
    " topKeyShare double, retentionMs long, retentionBytes long, shortestLifeMs long,"
    " longestLifeMs long"
)
SEGMENTS: Final = (
    "topic string, partition int, baseOffset long, nextOffset long, size long, batches long,"
    " records long, firstTimestamp timestamp, lastTimestamp timestamp, goesBy string,"
    " unreadableEarliest timestamp, unreadableLatest timestamp, removedEarliest timestamp,"
    " removedLatest timestamp, shortestLifeMs long, longestLifeMs long, pinnedBy string,"
    " dependsOn long"
)

_LATEST_MS: Final = (2**63 - 1) // 1000
"""Spark counts in us."""


def partitions_frame(spark: SparkSession, report: Report) -> DataFrame:
    """
    One row for each partition.
    """
    return _frame(spark, PARTITIONS, map(_partition, report.partitions))


def segments_frame(spark: SparkSession, report: Report) -> DataFrame:
    """
    One row for each segment.
    """
    rows = (
        _segment(partition, segment)
        for partition in report.partitions
        for segment in partition.segments
    )
    return _frame(spark, SEGMENTS, rows)


def history_frame(spark: SparkSession, history: str | Path) -> DataFrame:
    """
    One row for each run and partition, as the runs of reports with that *history* have found them.

    Raises:
        HistoryError: there is no such directory, or a file of it is no snapshot.
        InvalidOption: *history* is a URL.
    """
    return spark.createDataFrame(History.existing(history).table())


def _frame(spark: SparkSession, schema: str, rows: Iterator[tuple[Any, ...]]) -> DataFrame:
    # Times go as numbers, so that no time zone comes in between.
    plain = schema.replace(" timestamp", " long")
    columns = [
        f"timestamp_millis(if({name} > {_LATEST_MS}, {_LATEST_MS}, {name})) as {name}"
        if kind == "timestamp"
        else name
        for name, _, kind in (column.strip().partition(" ") for column in _columns(schema))
    ]
    return spark.createDataFrame(list(rows), plain).selectExpr(*columns)


def _columns(schema: str) -> list[str]:
    return schema.replace("map<string, long>", "map").split(",")


def _partition(facts: PartitionFacts) -> tuple[Any, ...]:
    counts, keys, producers = facts.counts, facts.keys, facts.producers
    disorder = facts.disorder
    return (
        *facts.partition,
        len(facts.segments),
        facts.size,
        counts.batches,
        counts.records,
        counts.records_per_batch,
        dict(counts.codecs),
        counts.first_ms,
        counts.last_ms,
        counts.late_batches,
        None if disorder is None else disorder.late_records,
        counts.most_late_ms if disorder is None else disorder.most_late_ms,
        counts.gaps,
        counts.missing_offsets,
        *(
            (None,) * 5
            if producers is None
            else (
                producers.producers,
                producers.unprotected_records,
                producers.repeated_batches,
                producers.repeated_records,
                producers.sequence_gaps,
            )
        ),
        *(
            (None,) * 4
            if keys is None
            else (
                keys.distinct,
                keys.without_key,
                keys.most[0][0] if keys.most else None,
                keys.top_share,
            )
        ),
        facts.config.retention_ms,
        facts.config.retention_bytes,
        facts.life.shortest_ms,
        facts.life.longest_ms,
    )


def _segment(partition: PartitionFacts, facts: SegmentFacts) -> tuple[Any, ...]:
    lifetime, counts = facts.lifetime, facts.counts
    return (
        *partition.partition,
        facts.base_offset,
        facts.end_offset,
        facts.size,
        None if counts is None else counts.batches,
        None if counts is None else counts.records,
        None if counts is None else counts.first_ms,
        lifetime.largest_timestamp if lifetime.has_timestamps else None,
        None if lifetime.goes_by is None else lifetime.goes_by.value,
        *lifetime.unreadable,
        *lifetime.removed,
        facts.life.shortest_ms,
        facts.life.longest_ms,
        facts.pin.value,
        lifetime.due_with,
    )
