"""
The columns of a table that has versions, compared with those that records have now.

A later version of Barnabas may write more columns than the one that has made a table. They are
added to the table, and the rows that were there have nulls in them. Columns of others are left
alone. What a table has of another type is no archive of records, and nothing is written to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from barnabas.pipeline.jobs.archive.table import ArchiveError
from barnabas.pipeline.jobs.parquet_files import ALWAYS
from barnabas.pipeline.schemas import ARCHIVED, FAR_TIMESTAMP

_MAY_BE_NULL: Final = ("key", "value", "headers", FAR_TIMESTAMP)


def has_first_columns(names: Sequence[str]) -> bool:
    """
    Whether a table with columns of these *names* may be an archive of any version.
    """
    return set(ALWAYS) <= set(names)


def missing_columns(name: str, there: pa.Schema, wanted: pa.Schema) -> list[str]:
    """
    The columns of *wanted* that are not *there*, which can be added.

    Args:
        name: of the table, for people.
        there: its columns.
        wanted: those of records, as the format of the table gives them back.

    Raises:
        ArchiveError: a column of the table does not go with records.
    """
    by_lower = {field.name.lower(): field.name for field in there}
    for field in wanted:
        found = by_lower.get(field.name.lower(), field.name)
        if found != field.name:
            raise ArchiveError(
                f"{name} cannot be continued: it has a column {found}, and that of records is"
                f" called {field.name}."
            )
        if found in there.names and there.field(found).type != field.type:
            raise ArchiveError(
                f"{name} cannot be continued: its column {found} is {there.field(found).type}, and"
                f" that of records is {field.type}."
            )
    for field in there:
        if not field.nullable and (field.name in _MAY_BE_NULL or field.name not in ARCHIVED.names):
            raise ArchiveError(
                f"{name} cannot be continued: its column {field.name} must not be null, and records"
                " have nulls there."
            )
    return [column for column in wanted.names if column not in there.names]
