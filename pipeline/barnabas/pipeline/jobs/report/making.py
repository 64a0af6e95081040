"""
Putting a report together.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from barnabas.pipeline.jobs.report.batches import (
    SegmentName,
    counts_by_segment,
    producers_by_partition,
)
from barnabas.pipeline.jobs.report.disorder import disorder_by_partition
from barnabas.pipeline.jobs.report.facts import (
    BatchCounts,
    Disorder,
    KeyCounts,
    PartitionFacts,
    Report,
    SegmentFacts,
)
from barnabas.pipeline.jobs.report.keys import keys_by_partition
from barnabas.pipeline.jobs.report.retention import explained, life_of, pin_of
from barnabas.pipeline.schemas import FAR_TIMESTAMP, RowLevel
from barnabas.storage.clock import Clock
from barnabas.storage.explain.known import ClusterSettings
from barnabas.storage.explain.logs import ReadOnlyLogs
from barnabas.storage.explain.report import PartitionReport
from barnabas.storage.fs.interface import Files
from barnabas.storage.topic_partition import TopicPartition


@dataclass(frozen=True)
class Scope:
    """
    What a report is about.
    """

    partitions: Sequence[TopicPartition]
    with_keys: bool
    """Whether all records are read, for their keys and their order."""
    now_ms: int


class RowSource:
    """
    Rows out of some partitions.
    """

    def __init__(
        self, spark: SparkSession, data_dirs: Iterable[Path], partitions: Iterable[TopicPartition]
    ) -> None:
        self._spark = spark
        assigned: dict[str, list[int]] = {}
        for topic, number in partitions:
            assigned.setdefault(topic, []).append(number)
        self._options = {
            "path": ",".join(map(str, data_dirs)),
            "assign": json.dumps(assigned),
            # What a killed broker had not noted yet is there all the same.
            "readUpTo": "logEnd",
        }

    def rows(self, level: RowLevel, columns: str | None = None) -> DataFrame:
        """
        Each query loads the source again: a source is planned once for each load.
        """
        reader = self._spark.read.format("barnabas").options(**self._options, level=level.value)
        return (reader if columns is None else reader.schema(columns)).load()


def make_report(
    spark: SparkSession, cluster: ClusterSettings, scope: Scope, *, files: Files, clock: Clock
) -> Report:
    """
    The report on the partitions of *scope*.

    Raises:
        ExplainError: a log cannot be read.
    """
    logs = ReadOnlyLogs(cluster, files, clock)
    looked_at = [
        explained(logs, partition, cluster.times, scope.now_ms) for partition in scope.partitions
    ]
    source = RowSource(spark, cluster.data_dirs, scope.partitions)
    counts = counts_by_segment(source.rows(RowLevel.BATCHES))
    producers = producers_by_partition(source.rows(RowLevel.BATCHES))
    keys: Mapping[TopicPartition, KeyCounts] = {}
    disorder: Mapping[TopicPartition, Disorder] = {}
    if scope.with_keys:
        place = "topic string, partition int"
        keys = keys_by_partition(source.rows(RowLevel.RECORDS, f"{place}, key binary"))
        columns = f"{place}, offset long, timestamp timestamp, {FAR_TIMESTAMP} long"
        times = source.rows(RowLevel.RECORDS, columns)
        disorder = disorder_by_partition(times)
    found = []
    for partition, report in zip(scope.partitions, looked_at, strict=True):
        segments = tuple(_segments(report, counts, scope.now_ms))
        settings = report.opened.settings
        found.append(
            PartitionFacts(
                partition,
                settings.config,
                settings.note,
                segments,
                _total(segments),
                producers.get(partition),
                keys.get(partition),
                disorder.get(partition),
            )
        )
    return Report(scope.now_ms, tuple(found))


def _segments(
    report: PartitionReport, counts: dict[SegmentName, BatchCounts], now_ms: int
) -> Iterable[SegmentFacts]:
    for each in report.segments:
        base_offset = each.segment.base_offset
        counted = counts.get(SegmentName(report.opened.partition, base_offset))
        yield SegmentFacts(
            base_offset,
            each.lifetime.end_offset,
            each.segment.size,
            counted,
            each.lifetime,
            life_of(each.lifetime, counted),
            pin_of(each.lifetime, now_ms),
        )


def _total(segments: Iterable[SegmentFacts]) -> BatchCounts:
    total = BatchCounts()
    for segment in segments:
        if segment.counts is not None:
            total.add(segment.counts)
    return total
