"""
What Spark sends to a worker, and what a worker does before its first task.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import InputPartition

from barnabas.pipeline.live.plan import LiveRange
from barnabas.pipeline.live.reader import read_live
from barnabas.pipeline.options import ReadOptions
from barnabas.pipeline.reading.plan import Work
from barnabas.pipeline.reading.reader import read


@dataclass
class SparkTask(InputPartition):
    """
    The work of one task.
    """

    work: Work | LiveRange


def rows_of(
    work: Work | LiveRange, columns: Sequence[str], options: ReadOptions
) -> Iterator[pa.RecordBatch]:
    """
    The rows of a task, from files or from a broker.
    """
    settle_worker()
    if isinstance(work, LiveRange):
        return read_live(work, columns, options)
    return read(work, columns, options)


def settle_worker() -> None:
    """
    Make the tasks that follow in this worker cheap; elsewhere nothing is done.

    After each task PySpark's daemon has the worker search all its objects for garbage. It has
    loaded some 700 modules, which takes 40 ms, many times what a small task does. So what is there
    at the first task is put aside, for as long as the worker lives.
    """
    if TaskContext.get() is not None:
        _put_aside()


@cache
def _put_aside() -> None:
    gc.collect()
    gc.freeze()
