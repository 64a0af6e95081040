"""
Reading log directories in this process, without Spark.

::

    from barnabas.pipeline.rows import scan

    for batch in scan("/var/lib/kafka/data", {"subscribe": "orders"}, columns=["key", "value"]):
        print(batch.num_rows)

The options are those of the Spark source. Whoever has workers of his own makes the ``plan`` once,
hands out its parts, which can be pickled, and gives each to ``read``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from barnabas.pipeline.options import ReadOptions, parse_options
from barnabas.pipeline.reading.plan import SegmentRange, Work, plan
from barnabas.pipeline.reading.reader import read
from barnabas.pipeline.schemas import Level, project, schema_of

__all__ = [
    "ReadOptions",
    "SegmentRange",
    "Work",
    "parse_options",
    "plan",
    "read",
    "scan",
    "schema",
]


def schema(options: ReadOptions) -> pa.Schema:
    """
    All columns of the rows that a read with these options has.
    """
    columns = schema_of(options.level, permissive=options.is_permissive)
    if options.level is Level.RECORDS and not options.include_headers:
        columns = project(columns, [name for name in columns.names if name != "headers"])
    return columns


def scan(
    path: str,
    options: Mapping[str, str] | None = None,
    *,
    columns: Sequence[str] | None = None,
) -> Iterator[pa.RecordBatch]:
    """
    The rows of log directories, in batches; those of a partition in their order.

    Args:
        path: a log directory, or several with commas between them.
        options: of the Spark source.
        columns: those wanted, in that order; all if None.

    Raises:
        InvalidOption, FileNotFoundError, UnknownTopic, DataLoss, CorruptBatch: as ``plan`` and
            ``read``.
    """
    parsed = parse_options({**(options or {}), "path": path})
    names = schema(parsed).names if columns is None else project(schema(parsed), columns).names
    for work in plan(parsed):
        yield from read(work, names, parsed)
