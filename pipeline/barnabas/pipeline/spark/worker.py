"""
Tasks that do the work inside the workers of Spark, and return a line of text each.
"""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Final, TypeVar

import pyarrow as pa
from pyspark.sql import SparkSession

from barnabas.pipeline.spark.session import translated
from barnabas.pipeline.spark.shipped import shipped
from barnabas.pipeline.spark.tasks import settle_worker

_T = TypeVar("_T")

_WAVES_AT_ONCE: Final = 2
"""While one ends, and leaves workers without a task, the next one has some."""
_TASKS_PER_SLOT: Final = 2

InWorker = Callable[[Sequence[_T], Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""What runs in a worker, usually ``each_of``; it is pickled."""


def in_waves(
    spark: SparkSession, job: str, tasks: Sequence[_T], in_worker: InWorker[_T]
) -> Iterator[str]:
    """
    What *in_worker* makes of each of the *tasks*, in their order.

    Bytes stay in the workers, which return one row for a task. Tasks run in waves, so that what is
    done can be noted while others still run.

    Raises:
        JobFailed: a task failed.
    """
    tag = f"barnabas-{job}-{uuid.uuid4().hex}"
    pool = ThreadPoolExecutor(_WAVES_AT_ONCE)
    running: deque[Future[list[str]]] = deque()
    started = 0
    made: list[str] = []
    try:
        while running or started < len(tasks):
            while started < len(tasks) and len(running) < _WAVES_AT_ONCE:
                # Executors of a cluster come one after the other, also when a job has begun.
                size = _TASKS_PER_SLOT * spark.sparkContext.defaultParallelism
                wave = tasks[started : started + size]
                first, started = started + 1, started + len(wave)
                about = f"barnabas {job}: tasks {first} to {started} of {len(tasks)}"
                run = partial(_run_wave, spark, tag, about, in_worker, wave)
                running.append(pool.submit(run))
            yield from made
            made = running.popleft().result()
        yield from made
    finally:
        # Of a run that failed, nothing else need end.
        spark.sparkContext.cancelJobsWithTag(tag)
        pool.shutdown(cancel_futures=True)


def _run_wave(
    spark: SparkSession, tag: str, about: str, in_worker: InWorker[_T], wave: Sequence[_T]
) -> list[str]:
    spark.sparkContext.addJobTag(tag)
    spark.sparkContext.setJobDescription(about)
    numbers = spark.range(0, len(wave), 1, len(wave))
    task = shipped(partial(in_worker, wave))
    with translated():
        rows = numbers.mapInArrow(task, "number long, made string").collect()
    made = {row.number: row.made for row in rows}
    return [made[number] for number in range(len(wave))]


def each_of(
    do: Callable[[_T], str], wave: Sequence[_T], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """
    *do* those of the *wave* whose numbers are in *batches*, one after the other.
    """
    settle_worker()
    for batch in batches:
        for number in batch.column(0).to_pylist():
            yield pa.RecordBatch.from_pydict({"number": [number], "made": [do(wave[number])]})
