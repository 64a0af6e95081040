"""
What Spark sends to a worker, and what a worker does before its first task.
"""

from __future__ import annotations

import gc
from dataclasses import dataclass
from functools import cache

from pyspark import TaskContext
from pyspark.sql.datasource import InputPartition

from barnabas.pipeline.reading.plan import Work


@dataclass
class Task(InputPartition):
    """
    The work of one task.
    """

    work: Work


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
