"""
The archive that is meant.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Final

from barnabas.pipeline.errors import InvalidOption
from barnabas.pipeline.jobs.archive.commits import Archive
from barnabas.pipeline.jobs.archive.table import ArchiveError, ArchiveTable
from barnabas.pipeline.storage import StorageOptions, hadoop_settings

_DELTA_LOG: Final = "_delta_log"

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Format(Enum):
    """
    Of the table of an archive.
    """

    PARQUET = "parquet"
    DELTA = "delta"
    ICEBERG = "iceberg"


def open_table(
    to: str | Path,
    format: str | Format = Format.PARQUET,
    *,
    catalog: str | None = None,
    catalog_properties: Mapping[str, str] | None = None,
    storage: StorageOptions | None = None,
) -> ArchiveTable:
    """
    The archive *to*, which need not be there yet.

    Args:
        to: the directory or URL of a table; for Iceberg, its name in the catalog, such as
            ``lake.records``.
        catalog: the name of a catalog that pyiceberg's configuration has; for Iceberg only.
        catalog_properties: of the catalog, instead of or beside those of the configuration.
        storage: how S3 and Azure are reached; as the environment says by default.

    Raises:
        ArchiveError: what is there is no archive.
        InvalidOption: there is no such format, or it has no tables at *to*.
        ModuleNotFoundError: the package that the format needs is not installed.
    """
    try:
        format = Format(format)
    except ValueError as error:
        known = ", ".join(each.value for each in Format)
        raise InvalidOption(f"There is no format {format}; there are {known}.") from error
    storage = StorageOptions.of() if storage is None else storage
    if format is Format.ICEBERG:
        if catalog is None:
            raise InvalidOption("An Iceberg table is in a catalog: name it with --catalog.")
        from barnabas.pipeline.jobs.archive.iceberg import IcebergArchive  # noqa: PLC0415  # an extra

        return IcebergArchive(str(to), catalog, catalog_properties or {}, storage)
    if catalog is not None:
        raise InvalidOption(f"Only Iceberg tables are in a catalog, not those of {format.value}.")
    if format is Format.DELTA:
        from barnabas.pipeline.jobs.archive.delta import DeltaArchive  # noqa: PLC0415  # an extra

        return DeltaArchive(str(to), storage)
    return Archive(to, storage=storage)


def storage_options(given: Mapping[str, str], spark: SparkSession | None = None) -> StorageOptions:
    """
    How S3 and Azure are reached: as *given*, as Spark's settings say, or as the environment does.

    Raises:
        InvalidOption: there is no option of a name that is given.
    """
    settings = {} if spark is None else hadoop_settings(spark.conf.getAll)
    return StorageOptions.of(given, settings)


def as_table(to: str | Path | ArchiveTable, storage: StorageOptions | None = None) -> ArchiveTable:
    """
    *to*, or the archive in Parquet at that path or URL.

    Raises:
        InvalidOption: there can be no archive.
    """
    if isinstance(to, ArchiveTable):
        return to
    return Archive(to, storage=storage)


def existing_archive(
    path: str | Path | ArchiveTable, storage: StorageOptions | None = None
) -> ArchiveTable:
    """
    The archive in Parquet or the Delta table that there is at a path or URL, or the one that was
    opened already.

    Raises:
        ArchiveError: there is none.
        InvalidOption: there can be no archive.
        ModuleNotFoundError: the package that its format needs is not installed.
    """
    there = as_table(path, storage)
    if isinstance(there, Archive) and there.files.is_directory(there.path / _DELTA_LOG):
        there = open_table(there.name, Format.DELTA, storage=there.storage)
    if not there.exists:
        raise ArchiveError(f"There is no archive in {there.name}.")
    return there
