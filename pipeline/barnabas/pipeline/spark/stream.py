"""
The source as a stream.

Spark asks, trigger after trigger, how far to go, and for the tasks that go there; it notes both in
its checkpoint, and asks again for the same tasks after a restart. Nothing is remembered here but
where a run with ``Trigger.AvailableNow`` is to end.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from barnabas.pipeline.live import stream_plan as live_stream_plan
from barnabas.pipeline.options import ReadOptions
from barnabas.pipeline.reading import stream_plan
from barnabas.pipeline.reading.stream_plan import Progress, from_json, to_json
from barnabas.pipeline.spark.shipped import Shipped
from barnabas.pipeline.spark.tasks import SparkTask, rows_of
from barnabas.pipeline.spark.types import chosen_columns


class LogStreamReader(Shipped, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """
    A read of what comes, step by step.

    Raises:
        InvalidOption: a column is asked for that there is not.
    """

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._columns = chosen_columns(schema, options)
        self._target: Progress | None = None
        self._of = stream_plan if options.client is None else live_stream_plan

    def initialOffset(self) -> dict[str, Any]:
        return to_json(self._of.initial(self._options))

    def getDefaultReadLimit(self) -> ReadLimit:
        # Only one can be said; where both are given, latestOffset keeps to both.
        if self._options.max_bytes_per_trigger is not None:
            return ReadMaxBytes(self._options.max_bytes_per_trigger)
        if self._options.max_offsets_per_trigger is not None:
            return ReadMaxRows(self._options.max_offsets_per_trigger)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = self._of.latest(self._options)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        limited = not isinstance(limit, ReadAllAvailable)
        end = self._of.admit(
            self._options,
            from_json(start),
            target=self._target,
            max_offsets=self._options.max_offsets_per_trigger if limited else None,
            max_bytes=self._options.max_bytes_per_trigger if limited else None,
        )
        return to_json(end)

    def reportLatestOffset(self) -> dict[str, Any]:
        return to_json(self._of.latest(self._options))

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        works = self._of.work_between(self._options, from_json(start), from_json(end))
        return [SparkTask(work) for work in works]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, SparkTask)
        return rows_of(partition.work, self._columns, self._options)
