"""
The data source ``barnabas`` for Spark: rows out of log directories or of a broker, with no jar.

::

    orders = spark.read.format("barnabas").option("subscribe", "orders").load("/var/lib/kafka/data")

Spark finds it by itself, as ``DefaultSource`` of the package ``pyspark_barnabas``. ``readStream``
gives what comes, in steps of ``maxBytesPerTrigger`` or ``maxOffsetsPerTrigger``, from where its
checkpoint says.

The workers of Spark run this code, so ``barnabas`` has to be installed for the Python that they
run, which is the one in ``PYSPARK_PYTHON``.

Spark passes neither the columns nor the filters of a query down to a source in Python that could
use both: in PySpark 4.3 a source that takes filters gives wrong rows as soon as one DataFrame is
queried twice. So a query says by options which partitions, offsets and times it wants, and by
``schema`` which columns. And it is planned once, when it is first run: a DataFrame that is used
again later does not see what came meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from barnabas.pipeline.live.plan import plan as live_plan
from barnabas.pipeline.option_parser import parse_options, parse_stream_options
from barnabas.pipeline.options import ReadOptions
from barnabas.pipeline.reading.plan import Work, plan
from barnabas.pipeline.rows import schema as schema_of_rows
from barnabas.pipeline.spark.shipped import Shipped
from barnabas.pipeline.spark.sink import TopicWriter
from barnabas.pipeline.spark.stream import LogStreamReader
from barnabas.pipeline.spark.stream_sink import TopicStreamWriter
from barnabas.pipeline.spark.tasks import SparkTask, rows_of
from barnabas.pipeline.spark.types import chosen_columns, spark_schema
from barnabas.pipeline.storage import hadoop_settings
from barnabas.pipeline.writing.options import parse_write_options

NAME = "barnabas"


def register(spark: SparkSession) -> None:
    """
    Make the source known to a session, under the name ``barnabas``, with what the session's
    settings say of S3 and Azure by now: ``spark.hadoop.fs.s3a.access.key`` and its like. Spark
    finds the source by itself as well, but tells it nothing of the session.
    """
    settings = hadoop_settings(spark.conf.getAll)
    there = type(BarnabasSource.__name__, (BarnabasSource,), {"settings": settings})
    spark.dataSource.register(there if settings else BarnabasSource)


class BarnabasSource(Shipped, DataSource):
    """
    What Spark asks for when a query names the format.
    """

    settings: ClassVar[Mapping[str, str]] = {}
    """Of the session, that say how S3 and Azure are reached."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> StructType:
        return spark_schema(schema_of_rows(self._options))

    def reader(self, schema: StructType) -> LogReader:
        return LogReader(self._options, schema)

    def streamReader(self, schema: StructType) -> LogStreamReader:
        return LogStreamReader(parse_stream_options(self.options, self.settings), schema)

    def writer(self, schema: StructType, overwrite: bool) -> TopicWriter:
        return TopicWriter(parse_write_options(self.options), schema, overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> TopicStreamWriter:
        return TopicStreamWriter(parse_write_options(self.options), schema, overwrite=overwrite)

    @property
    def _options(self) -> ReadOptions:
        return parse_options(self.options, self.settings)


class LogReader(Shipped, DataSourceReader):
    """
    A read of what there is now.

    Raises:
        InvalidOption: a column is asked for that there is not.
    """

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._columns = chosen_columns(schema, options)

    def partitions(self) -> list[InputPartition]:
        # Of an empty list Spark makes a task without an InputPartition.
        if self._options.client is not None:
            live = [SparkTask(work) for work in live_plan(self._options)]
            return [*live] or [SparkTask(Work())]
        return [SparkTask(work) for work in plan(self._options) or [Work()]]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, SparkTask)
        return rows_of(partition.work, self._columns, self._options)
