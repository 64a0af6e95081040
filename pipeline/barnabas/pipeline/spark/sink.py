"""
The source ``barnabas`` as a sink: rows become records of topics, with no jar.

::

    df.write.format("barnabas").option("kafka.bootstrap.servers", "localhost:9092")
        .option("topic", "orders").mode("append").save()

The columns are those of Spark's Kafka connector: ``value``, and if they are there ``key``,
``topic``, ``partition`` and ``headers``; here ``timestamp`` as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    StringType,
    StructType,
    TimestampType,
)

from barnabas.client.cluster import Cluster
from barnabas.pipeline.errors import InvalidOption
from barnabas.pipeline.spark.shipped import Shipped
from barnabas.pipeline.spark.tasks import settle_worker
from barnabas.pipeline.writing.identity import idempotent
from barnabas.pipeline.writing.options import WriteOptions
from barnabas.pipeline.writing.producer import TaskProducer
from barnabas.pipeline.writing.task import write_rows

_TEXT_OR_BYTES: Final = (StringType(), BinaryType())
_ACCEPTED: Final[dict[str, tuple[DataType, ...]]] = {
    "topic": (StringType(),),
    "key": _TEXT_OR_BYTES,
    "value": _TEXT_OR_BYTES,
    "partition": (IntegerType(),),
    "timestamp": (TimestampType(),),
}
"""The types of the connector's ``KafkaWriter``, and one for timestamps, which it cannot write."""
_HEADERS: Final = "array<struct<key: string, value: binary>>"


def check_columns(schema: StructType, options: WriteOptions) -> None:
    """
    Raises:
        InvalidOption: a column is missing or has another type; columns of other names are there.
    """
    if "value" not in schema.names:
        raise InvalidOption("A column value is needed, of type string or binary.")
    if "topic" not in schema.names and options.topic is None:
        raise InvalidOption("The option topic is needed, as there is no column topic.")
    for field in schema:
        if field.name == "headers":
            if not _has_headers_type(field.dataType):
                raise _wrong_type("headers", field.dataType, _HEADERS)
        elif field.name in _ACCEPTED:
            kinds = _ACCEPTED[field.name]
            if not any(type(field.dataType) is type(kind) for kind in kinds):
                names = " or ".join(kind.simpleString() for kind in kinds)
                raise _wrong_type(field.name, field.dataType, names)


def _has_headers_type(kind: DataType) -> bool:
    if not isinstance(kind, ArrayType) or not isinstance(kind.elementType, StructType):
        return False
    types = [type(field.dataType) for field in kind.elementType]
    return types == [StringType, BinaryType]


def _wrong_type(name: str, there: DataType, accepted: str) -> InvalidOption:
    return InvalidOption(f"The column {name} is {there.simpleString()}, and should be {accepted}.")


@dataclass
class RowsWritten(WriterCommitMessage):
    """
    What a task has written.
    """

    rows: int


class TopicWriter(Shipped, DataSourceArrowWriter):
    """
    A batch query that writes. A task that fails is run again by Spark, and what it had written
    stays: each row is written at least once, as with the connector.

    Raises:
        InvalidOption: the columns are not as they should be, or the mode is not append.
    """

    def __init__(self, options: WriteOptions, schema: StructType, *, overwrite: bool) -> None:
        if overwrite:
            raise InvalidOption(
                "The source barnabas appends to topics, mode('append'): nothing in a topic can be"
                " overwritten."
            )
        check_columns(schema, options)
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> RowsWritten:
        settle_worker()
        task = task_number()
        with Cluster(self._options.client, creates_topics=True) as cluster:
            identity = idempotent(cluster, self._options)
            producer = TaskProducer(cluster, self._options, identity, task)
            return RowsWritten(write_rows(cluster, self._options, producer, task, iterator))


def task_number() -> int:
    """
    The number of the partition of the query that the task of this worker has.
    """
    context = TaskContext.get()
    return 0 if context is None else context.partitionId()
