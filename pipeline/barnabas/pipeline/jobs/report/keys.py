"""
How unevenly keys occur.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from barnabas.pipeline.jobs.report.facts import KeyCounts
from barnabas.storage.topic_partition import TopicPartition

SHOWN: Final = 5
"""How many of the most frequent keys a report has of each partition."""


def keys_by_partition(records: DataFrame) -> dict[TopicPartition, KeyCounts]:
    """
    Args:
        records: rows with ``topic``, ``partition`` and ``key``.
    """
    place = ("topic", "partition")
    counted = records.groupBy(*place, "key").agg(F.count("*").alias("n"))
    has_key = F.col("key").isNotNull()
    most_first = Window.partitionBy(*place, has_key).orderBy(F.desc("n"), "key")
    most = F.when(has_key & (F.col("rank") <= SHOWN), F.struct("n", "key"))
    rows = (
        counted.withColumn("rank", F.row_number().over(most_first))
        .groupBy(*place)
        .agg(
            F.sum("n").alias("records"),
            F.sum(F.when(has_key, 0).otherwise(F.col("n"))).alias("without"),
            F.count("key").alias("distinct"),
            F.collect_list(most).alias("most"),
        )
    )
    return {
        TopicPartition(row.topic, row.partition): KeyCounts(
            row.records,
            row.without,
            row.distinct,
            tuple(
                (bytes(each.key), each.n)
                for each in sorted(row.most, key=lambda each: (-each.n, bytes(each.key)))
            ),
        )
        for row in rows.collect()
    }
