"""
Which archive a command is about, and how its store is reached.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from barnabas.pipeline.jobs.common import named_values

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from barnabas.pipeline.jobs.archive.table import ArchiveTable


def add_archive(parser: argparse.ArgumentParser, *, may_be_new: bool = False) -> None:
    """
    What is asked of an archive beside its place, in a command that has ``add_spark``.

    Args:
        may_be_new: whether it need not be there, and does not say then which format it has.
    """
    if may_be_new:
        parser.add_argument(
            "--format",
            choices=("parquet", "delta", "iceberg"),
            default="parquet",
            help="of the archive; parquet by default",
        )
    else:
        parser.set_defaults(format=None)
    parser.add_argument(
        "--catalog", metavar="NAME", help="of pyiceberg's configuration, in which the table is"
    )
    parser.add_argument(
        "--catalog-property",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="of the catalog, such as uri=sqlite:////mnt/catalog.db; may be repeated",
    )
    parser.add_argument(
        "--storage-option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="of S3 or Azure, such as AWS_REGION=eu-central-1 or fs.s3a.endpoint=...;"
        " may be repeated",
    )


def archive_of(
    options: argparse.Namespace, place: str, spark: SparkSession | None = None
) -> ArchiveTable:
    """
    The archive at *place*, as it is now. It need not be there yet if the command asks for its
    format.

    Raises:
        ArchiveError: there is none, or something else.
        InvalidOption: there can be none.
    """
    # --help, and an environment without Spark, should not wait for the import of it.
    from barnabas.pipeline.jobs.archive import opening  # noqa: PLC0415  # see above
    from barnabas.pipeline.storage import StorageOptions, hadoop_settings  # noqa: PLC0415  # as above

    given = named_values(options.storage_option, "--storage-option")
    settings = named_values(options.conf, "--conf") if spark is None else spark.conf.getAll
    storage = StorageOptions.of(given, hadoop_settings(settings))
    catalog_properties = named_values(options.catalog_property, "--catalog-property")
    if options.format is None and options.catalog is None:
        return opening.existing_archive(place, storage)
    return opening.open_table(
        place,
        options.format or opening.Format.ICEBERG,
        catalog=options.catalog,
        catalog_properties=catalog_properties,
        storage=storage,
    )


def existing_archive_of(
    options: argparse.Namespace, place: str, spark: SparkSession | None = None
) -> ArchiveTable:
    """
    The same, which is there.

    Raises:
        ArchiveError: there is none.
        InvalidOption: there can be none.
    """
    from barnabas.pipeline.jobs.archive import opening  # noqa: PLC0415  # see archive_of

    return opening.existing_archive(archive_of(options, place, spark))
