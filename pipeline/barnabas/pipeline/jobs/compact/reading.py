"""
Reading what was compacted: the files that its snapshots name, and no others.
"""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from barnabas.pipeline.jobs.archive.reading import read_files
from barnabas.pipeline.jobs.compact.snapshots import DATA, Snapshots


def read_compacted(spark: SparkSession, path: str | Path) -> DataFrame:
    """
    The latest records of all topics in a directory, with the columns of the source ``barnabas``.

    Load again after the next run: it removes the files that it replaces.

    Raises:
        CompactError: it is not whole, or there is nothing compacted.
        InvalidOption: *path* is a URL, and not of a file.
    """
    snapshots = Snapshots.existing(path)
    files = [
        snapshots.path / partition.file
        for partitions in snapshots.topics.values()
        for partition in partitions
        if partition.file is not None
    ]
    return read_files(spark, snapshots.path / DATA, files)
