"""
The rows of an archive, read by engines that know nothing of Barnabas.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from barnabas.pipeline.schemas import RECORDS
from tests.support.scanned import sorted_rows


def delta_rows(url: str | Path, storage: Mapping[str, str] | None = None) -> list[tuple[Any, ...]]:
    from deltalake import DeltaTable  # noqa: PLC0415  # not all have it

    table = DeltaTable(str(url), storage_options=dict(storage or {}))
    return rows_of(table.to_pyarrow_table())


def iceberg_rows(
    name: str, properties: Mapping[str, str], storage: Mapping[str, str] | None = None
) -> list[tuple[Any, ...]]:
    """
    Read a table of the catalog ``lake`` with pyiceberg.

    pyiceberg returns a null list as an empty one; records have headers or null.
    """
    from pyiceberg.catalog import load_catalog  # noqa: PLC0415  # not all have it

    catalog = load_catalog("lake", **properties, **dict(storage or {}))
    rows = rows_of(catalog.load_table(name).scan().to_arrow())
    return [(*row[:-1], row[-1] or None) for row in rows]


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    table = table.select(RECORDS.names).cast(RECORDS)
    return sorted_rows(table.to_batches())
