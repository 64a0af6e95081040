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


def test_worker_freezes_objects_after_its_first_task(spark: SparkSession) -> None:
    """
    Spark collects garbage after each task.
    """

    def settled(wave: Sequence[int], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return each_of(lambda _: str(gc.get_freeze_count()), wave, batches)

    [put_aside] = in_waves(spark, "test", [0], settled)

    assert int(put_aside) > 10_000


def test_spark_job_has_a_description_in_the_ui(spark: SparkSession) -> None:
    tasks = range(2 * WAVE + 3)

    made = [*in_waves(spark, "test", tasks, partial(each_of, str))]

    assert [*map(str, tasks)] == made
    jobs = spark.sparkContext._jsc.sc().statusStore().jobsList(None)
    shown = [str(jobs.apply(number).description()) for number in range(jobs.size())]
    assert {
        f"Some(barnabas test: tasks {first} to {last} of {len(tasks)})"
        for first, last in ((1, WAVE), (WAVE + 1, 2 * WAVE), (2 * WAVE + 1, len(tasks)))
    } <= {*shown}


def test_objects_are_frozen_only_in_workers() -> None:
    """
    Elsewhere the process belongs to the user.
    """
    before = gc.get_freeze_count()

    settle_worker()

    assert before == gc.get_freeze_count()
