"""
The rows that the pipeline reads, as plain Python values.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa

from barnabas.pipeline.rows import scan


def scanned_rows(path: Path | str, **options: Any) -> list[tuple[Any, ...]]:
    """
    All columns of all rows, with timestamps in ms and headers as pairs.
    """
    return plain_rows(scan(str(path), {"includeHeaders": "true", **options}))


def sorted_rows(batches: Iterable[pa.RecordBatch]) -> list[tuple[Any, ...]]:
    return sorted(plain_rows(batches), key=place_of)


def place_of(row: tuple[Any, ...]) -> tuple[str, int, int]:
    return row[2], row[3], row[4]


def plain_rows(batches: Iterable[pa.RecordBatch]) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    for batch in batches:
        batch.validate(full=True)
        columns = [_plain(column) for column in batch.columns]
        rows += zip(*columns, strict=True)
    return rows


def _plain(column: pa.Array) -> list[Any]:
    if pa.types.is_timestamp(column.type):
        return [None if us is None else us // 1000 for us in column.cast(pa.int64()).to_pylist()]
    if pa.types.is_list(column.type):
        return [
            None if row is None else [(header["key"], header["value"]) for header in row]
            for row in column.to_pylist()
        ]
    values: list[Any] = column.to_pylist()
    return values


def scanned_offsets(path: Path | str, **options: Any) -> list[int]:
    batches = scan(str(path), options, columns=["offset"])
    return [offset for batch in batches for offset in batch.column(0).to_pylist()]
