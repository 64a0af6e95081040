"""
Reading log directories in this process, without Spark.

::

    from barnabas.pipeline.rows import scan

    for batch in scan("/var/lib/kafka/data", {"subscribe": "orders"}, columns=["key", "value"]):
        print(batch.num_rows)

The options are those of the Spark source. A program with workers of its own makes the ``plan``
once, hands out its parts, which can be pickled, and gives each to ``read``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from barnabas.pipeline.option_parser import parse_options, warn_of_old
from barnabas.pipeline.options import ReadOptions
from barnabas.pipeline.reading.plan import SegmentRange, Work, plan
from barnabas.pipeline.reading.reader import read
from barnabas.pipeline.schemas import FAR_TIMESTAMP, OLD_COLUMNS, RowLevel, project, schema_of

__all__ = [
    "ReadOptions",
    "SegmentRange",
    "Work",
    "all_columns",
    "chosen",
    "parse_options",
    "plan",
    "read",
    "scan",
    "schema",
]


def schema(options: ReadOptions) -> pa.Schema:
    """
    The columns of the rows that a read with these options has if nobody chooses others.
    """
    columns = all_columns(options)
    left_out = {*OLD_COLUMNS, FAR_TIMESTAMP} - {options.corrupt_column}
    if options.level is RowLevel.RECORDS and not options.include_headers:
        left_out.add("headers")
    return project(columns, [name for name in columns.names if name not in left_out])


def all_columns(options: ReadOptions) -> pa.Schema:
    """
    The columns among which a schema can choose.
    """
    corrupt = options.corrupt_column if options.is_permissive else None
    return schema_of(options.level, corrupt_column=corrupt)


def chosen(columns: Sequence[str], options: ReadOptions) -> list[str]:
    """
    The *columns* that somebody has chosen, after a warning where one has another name now.

    Raises:
        InvalidOption: there is no such column.
    """
    names: list[str] = project(all_columns(options), columns).names
    for name in names:
        if name in OLD_COLUMNS and name != options.corrupt_column:
            warn_of_old(f"the column {name}", OLD_COLUMNS[name])
    return names


def scan(
    path: str | Sequence[str],
    options: Mapping[str, str] | None = None,
    *,
    columns: Sequence[str] | None = None,
) -> Iterator[pa.RecordBatch]:
    """
    The rows of log directories, in batches; those of a partition in their order.

    Args:
        path: a log directory, or several: in a list, or with commas between them.
        options: of the Spark source.
        columns: those wanted, in that order; all if None.

    Raises:
        InvalidOption, FileNotFoundError, UnknownTopic, DataLoss, CorruptBatch: as ``plan`` and
            ``read``.
    """
    paths = {"path": path} if isinstance(path, str) else {"paths": json.dumps(list(path))}
    parsed = parse_options({**(options or {}), **paths})
    names = schema(parsed).names if columns is None else chosen(columns, parsed)
    for work in plan(parsed):
        yield from read(work, names, parsed)
