"""
What the headers of batches tell: counted by Spark, added up per segment.

One pass over all headers gives numbers that can be added; so a partition's are the sum of its
segments'. Which producer has repeated itself takes another order, hence another pass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final, NamedTuple

from pyspark.sql import Column, DataFrame, Row, Window
from pyspark.sql import functions as F

from barnabas.pipeline.jobs.report.facts import BatchCounts, Producers
from barnabas.storage.topic_partition import TopicPartition

NO_PRODUCER: Final = -1
_SEQUENCES: Final = 1 << 31
"""Sequence numbers begin at 0 again after the largest int."""


class SegmentName(NamedTuple):
    """
    A segment of a partition, by the offset that its file is named after.
    """

    partition: TopicPartition
    base_offset: int


def counts_by_segment(batches: DataFrame) -> dict[SegmentName, BatchCounts]:
    """
    Args:
        batches: rows of the source at ``level=batches``.
    """
    earlier = Window.partitionBy("topic", "partition").orderBy("baseOffset")
    before = earlier.rowsBetween(Window.unboundedPreceding, -1)
    first, last = _millis("baseTimestamp"), _millis("maxTimestamp")
    late = F.max(last).over(before) - first
    gap = F.col("baseOffset") - F.lag("nextOffset").over(earlier)
    rows = (
        batches.withColumns({"first": first, "last": last, "late": late, "gap": gap})
        .withColumn("fill", F.floor(F.log2("records")).cast("int"))
        .groupBy("topic", "partition", "segment", "codec", "control", "fill")
        .agg(
            F.count("*").alias("batches"),
            F.sum("records").alias("records"),
            F.sum("size").alias("size"),
            F.min("first").alias("first"),
            F.max("last").alias("last"),
            F.count_if(F.col("late") > 0).alias("lateBatches"),
            F.max("late").alias("mostLate"),
            F.count_if(F.col("gap") > 0).alias("gaps"),
            F.sum(F.greatest("gap", F.lit(0))).alias("missing"),
        )
    )
    return _added_up(rows.collect())


def _millis(column: str) -> Column:
    # A batch without timestamps has -1.
    millis = F.unix_millis(column)
    return F.when(millis >= 0, millis)


def _added_up(rows: Iterable[Row]) -> dict[SegmentName, BatchCounts]:
    found: dict[SegmentName, BatchCounts] = {}
    for row in rows:
        name = SegmentName(TopicPartition(row.topic, row.partition), row.segment)
        found.setdefault(name, BatchCounts()).add(_counts(row))
    return found


def _counts(row: Row) -> BatchCounts:
    is_of_users = not row.control
    return BatchCounts(
        batches=row.batches,
        control_batches=0 if is_of_users else row.batches,
        records=row.records if is_of_users else 0,
        size=row["size"],
        first_ms=row.first,
        last_ms=row.last,
        late_batches=row.lateBatches,
        most_late_ms=max(0, row.mostLate or 0),
        gaps=row.gaps,
        missing_offsets=row.missing or 0,
        codecs=Counter({row.codec: row["size"]} if is_of_users else {}),
        # A batch that compaction has emptied has no records, and no logarithm.
        fill=Counter({row.fill: row.batches} if is_of_users and row.fill is not None else {}),
    )


def producers_by_partition(batches: DataFrame) -> dict[TopicPartition, Producers]:
    """
    Args:
        batches: as above.
    """
    each = ("topic", "partition", "producerId")
    in_turn = Window.partitionBy(*each, "producerEpoch").orderBy("baseOffset")
    width = F.col("nextOffset") - F.col("baseOffset")
    expected = F.lag((F.col("baseSequence") + width) % _SEQUENCES).over(in_turn)
    ahead = F.col("baseSequence") - expected
    # Whom the broker has forgotten begins again, and half of all numbers behind is ahead.
    begins_again = (F.col("baseSequence") == 0) & (F.lag("baseSequence").over(in_turn) != 0)
    in_order = (ahead == 0) | begins_again
    is_protected = F.col("producerId") != NO_PRODUCER
    repeats = is_protected & ~in_order & ((ahead < 0) & (ahead > -(_SEQUENCES // 2)))
    skips = is_protected & ~in_order & ~repeats
    rows = (
        batches.filter("not control")
        .withColumns({"repeats": repeats, "skips": skips})
        .groupBy(*each)
        .agg(
            F.sum("records").alias("records"),
            F.count_if("repeats").alias("batches"),
            F.sum(F.when(F.col("repeats"), F.col("records")).otherwise(0)).alias("repeated"),
            F.count_if("skips").alias("gaps"),
        )
        .groupBy("topic", "partition")
        .agg(
            F.count_if(is_protected).alias("producers"),
            F.sum(F.when(is_protected, 0).otherwise(F.col("records"))).alias("unprotected"),
            F.sum("batches").alias("batches"),
            F.sum("repeated").alias("repeated"),
            F.sum("gaps").alias("gaps"),
            F.max_by("producerId", "repeated").alias("worst"),
        )
    )
    return {
        TopicPartition(row.topic, row.partition): Producers(
            row.producers,
            row.unprotected,
            row.batches,
            row.repeated,
            row.gaps,
            row.worst if row.repeated else None,
        )
        for row in rows.collect()
    }
