"""
Reading an archive: the files that its commits name, and no others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, StringType

from barnabas.pipeline.errors import InvalidOption
from barnabas.pipeline.jobs.archive.commits import Archive
from barnabas.pipeline.jobs.archive.files import file_batches
from barnabas.pipeline.jobs.archive.opening import existing_archive, storage_options
from barnabas.pipeline.jobs.archive.store import DataStore
from barnabas.pipeline.jobs.archive.table import ArchivedFile, ArchiveTable
from barnabas.pipeline.jobs.parquet_files import COLUMNS, SCHEMA
from barnabas.pipeline.option_parser import parse_options
from barnabas.pipeline.options import TopicSelection
from barnabas.pipeline.schemas import RECORDS
from barnabas.pipeline.spark.shipped import shipped
from barnabas.pipeline.spark.tasks import settle_worker
from barnabas.pipeline.spark.types import spark_schema

_WHICH: Final = ("subscribe", "subscribePattern", "assign")
_ROWS: Final = 65_536
_HIVE_NULL: Final = "__HIVE_DEFAULT_PARTITION__"
"""What Spark takes for null in a path, and what may be the name of a topic."""

# Those of the path have types here, or Spark would take a topic for a number that looks like one.
_COLUMNS = spark_schema(SCHEMA).add("topic", StringType()).add("partition", IntegerType())


def read_archive(
    spark: SparkSession,
    path: str | Path | ArchiveTable,
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """
    The records of an archive, with the columns of the source ``barnabas``. What is archived later
    is not seen.

    In Parquet on a local disk, filters by topic and partition choose files, and those by offset and
    timestamp row groups. Elsewhere workers read all files of what *options* choose, one in a task.

    Args:
        path: the directory or URL of an archive, or one of ``open_table``.
        options: subscribe, subscribePattern or assign.

    Raises:
        ArchiveError: the archive is not whole, or there is none.
        InvalidOption: there can be no archive, or there is no such option.
    """
    archive = existing_archive(path, storage_options({}, spark))
    topics = parse_topics(options or {})
    files = [
        file
        for partition in archive.partitions
        if topics is None or topics.has(partition)
        for file in archive.files_of(partition)
    ]
    if isinstance(archive, Archive) and archive.store.is_local:
        paths = [archive.path / file.path for file in files]
        return read_files(spark, archive.path / "data", paths)
    if not files:
        return spark.createDataFrame([], spark_schema(RECORDS))
    task = shipped(partial(_read_in_worker, archive.store, files))
    numbers = spark.range(0, len(files), 1, len(files))
    return numbers.mapInArrow(task, spark_schema(RECORDS))


def parse_topics(options: Mapping[str, str]) -> TopicSelection | None:
    """
    Those that are chosen; None if nothing is said, and all are.

    Raises:
        InvalidOption: there is no such option.
    """
    known = {name.lower() for name in _WHICH}
    for name in options:
        if name.lower() not in known:
            raise InvalidOption(f"Reading an archive takes {', '.join(_WHICH)}, and not {name}.")
    return parse_options({**options, "path": "."}).topics if options else None


def _read_in_worker(
    store: DataStore, files: Sequence[ArchivedFile], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    settle_worker()
    for batch in batches:
        for number in batch.column(0).to_pylist():
            yield from _records_of(store, files[number])


def _records_of(store: DataStore, file: ArchivedFile) -> Iterator[pa.RecordBatch]:
    topic, partition = file.topic_partition
    for batch in file_batches(store, file, COLUMNS, _ROWS):
        columns = {name: batch.column(name) for name in COLUMNS}
        columns["topic"] = pa.array([topic] * len(batch), RECORDS.field("topic").type)
        columns["partition"] = pa.array([partition] * len(batch), RECORDS.field("partition").type)
        arrays = [columns[name] for name in RECORDS.names]
        yield pa.RecordBatch.from_arrays(arrays, schema=RECORDS)


def read_files(spark: SparkSession, base: Path, files: Iterable[Path]) -> DataFrame:
    """
    The records in *files*, which have topic and partition in their paths below *base*.
    """
    paths = [str(file) for file in files]
    if not paths:
        return spark.createDataFrame([], _COLUMNS).select(*RECORDS.names)
    reader = spark.read.schema(_COLUMNS).option("basePath", str(base))
    # Spark's own name of the option by which a stream reads names that are no patterns
    # (DataSource.GLOB_PATHS_KEY).
    rows = reader.option("__globPaths__", "false").parquet(*paths)
    if any(f"/topic={_HIVE_NULL}/" in path for path in paths):
        rows = rows.withColumn("topic", F.coalesce("topic", F.lit(_HIVE_NULL)))
    return rows.select(*RECORDS.names)
