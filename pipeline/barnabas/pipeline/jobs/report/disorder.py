"""
How far timestamps go up with offsets, record by record.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from barnabas.pipeline.jobs.report.facts import Disorder
from barnabas.pipeline.schemas import FAR_TIMESTAMP
from barnabas.storage.topic_partition import TopicPartition


def disorder_by_partition(records: DataFrame) -> dict[TopicPartition, Disorder]:
    """
    Args:
        records: rows with ``topic``, ``partition``, ``offset``, ``timestamp`` and ``farTimestamp``.
    """
    millis = F.coalesce(F.unix_millis("timestamp"), F.col(FAR_TIMESTAMP))
    # A record without timestamp has -1.
    time = F.when(millis >= 0, millis)
    in_turn = Window.partitionBy("topic", "partition").orderBy("offset")
    before = in_turn.rowsBetween(Window.unboundedPreceding, -1)
    late = F.max(time).over(before) - time
    rows = (
        records.withColumn("late", late)
        .groupBy("topic", "partition")
        .agg(F.count_if(F.col("late") > 0).alias("records"), F.max("late").alias("most"))
    )
    return {
        TopicPartition(row.topic, row.partition): Disorder(row.records, max(0, row.most or 0))
        for row in rows.collect()
    }
