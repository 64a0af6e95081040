"""
Reading an archive: the files that its commits name, and no others.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import IntegerType, StringType

from barnabas.pipeline.jobs.archive.commits import Archive
from barnabas.pipeline.jobs.parquet_files import SCHEMA
from barnabas.pipeline.schemas import RECORDS
from barnabas.pipeline.spark.types import spark_schema

# Those of the path have types here, or Spark would take a topic for a number that looks like one.
_COLUMNS = spark_schema(SCHEMA).add("topic", StringType()).add("partition", IntegerType())


def read_archive(spark: SparkSession, path: str | Path) -> DataFrame:
    """
    The records of an archive, with the columns of the source ``barnabas``.

    Filters by topic and partition choose files, and those by offset and timestamp row groups. What
    is archived later is not seen.

    Raises:
        ArchiveError: the archive is not whole, or there is none.
        InvalidOption: *path* is a URL, and not of a file.
    """
    archive = Archive.existing(path)
    files = [
        archive.path / commit.file
        for commits in archive.commits.values()
        for commit in commits
        if commit.file is not None
    ]
    return read_files(spark, archive.path / "data", files)


def read_files(spark: SparkSession, base: Path, files: Iterable[Path]) -> DataFrame:
    """
    The records in *files*, which have topic and partition in their paths below *base*.
    """
    paths = [str(file) for file in files]
    if paths:
        rows = spark.read.schema(_COLUMNS).option("basePath", str(base)).parquet(*paths)
    else:
        rows = spark.createDataFrame([], _COLUMNS)
    return rows.select(*RECORDS.names)
