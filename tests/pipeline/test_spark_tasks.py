"""
What a worker of Spark does before its first task.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from barnabas.pipeline.spark.tasks import settle_worker
from barnabas.pipeline.spark.worker import each_of, in_waves

pytestmark = [pytest.mark.spark, pytest.mark.prove]

WAVE = 4
"""Tasks, on the two cores of the session."""


def test_a_worker_need_not_search_what_it_had_at_its_first_task(spark: SparkSession) -> None:
    """
    Spark has it search for garbage after each task.
    """

    def settled(wave: Sequence[int], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return each_of(lambda _: str(gc.get_freeze_count()), wave, batches)

    [put_aside] = in_waves(spark, "test", [0], settled)

    assert int(put_aside) > 10_000


def test_the_work_of_a_job_has_a_name_in_the_pages_of_spark(spark: SparkSession) -> None:
    """
    The results come in the order of the tasks.
    """
    tasks = range(2 * WAVE + 3)

    made = [*in_waves(spark, "test", tasks, partial(each_of, str))]

    assert [*map(str, tasks)] == made
    jobs = spark.sparkContext._jsc.sc().statusStore().jobsList(None)
    shown = [str(jobs.apply(number).description()) for number in range(jobs.size())]
    assert {
        f"Some(barnabas test: tasks {first} to {last} of {len(tasks)})"
        for first, last in ((1, WAVE), (WAVE + 1, 2 * WAVE), (2 * WAVE + 1, len(tasks)))
    } <= {*shown}


def test_nothing_is_put_aside_outside_of_workers() -> None:
    """
    The process belongs to somebody else there.
    """
    before = gc.get_freeze_count()

    settle_worker()

    assert before == gc.get_freeze_count()
