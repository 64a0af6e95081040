"""
A killed run leaves a consistent archive, and the next run completes it.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from barnabas.pipeline.jobs.archive import job, parquet
from barnabas.pipeline.jobs.archive.commit import ArchiveCommit
from barnabas.pipeline.jobs.archive.commits import Archive
from barnabas.pipeline.jobs.archive.job import archive
from barnabas.pipeline.jobs.archive.parquet import RangeToArchive
from barnabas.pipeline.jobs.archive.planning import archive_options, plan_archive
from barnabas.pipeline.jobs.archive.store import DataStore
from barnabas.pipeline.options import ReadOptions
from barnabas.pipeline.spark.session import JobFailed
from barnabas.storage.fs.disk import DiskFiles
from tests.pipeline.archive.archived import archived_rows, closed_rows
from tests.pipeline.killed_at import run_module

pytestmark = [pytest.mark.spark, pytest.mark.prove]

KILLS = 10
SECOND_COMMIT = 22
"""The step about which it is made, if workers write the files."""


def run_until(
    logs: Path, to: Path, step: int, master: str = "-"
) -> subprocess.CompletedProcess[str]:
    """
    Archive in a separate process that dies at the given step.
    """
    return run_module("killed_at", "archive", logs, to, step, master)


def is_a_beginning(logs: Path, to: Path) -> bool:
    """
    Whether an archive has the first rows of each partition and nothing else.
    """
    expected, found = closed_rows(logs), archived_rows(to)
    for partition in {row[2:4] for row in expected}:
        all_of_it = [row for row in expected if row[2:4] == partition]
        archived = [row for row in found if row[2:4] == partition]
        if archived != all_of_it[: len(archived)]:
            return False
    return {row[2:4] for row in found} <= {row[2:4] for row in expected}


def test_killed_driver_leaves_an_archive_that_can_be_continued(logs: Path, tmp_path: Path) -> None:
    """
    The driver dies at ten steps, repeatedly on the same archive.
    """
    whole = run_until(logs, tmp_path / "whole", -1)
    assert 0 == whole.returncode, whole.stderr
    steps = int(whole.stdout)
    expected = closed_rows(logs)
    assert expected == archived_rows(tmp_path / "whole")

    chance = random.Random(43)
    left = []
    for kill, step in enumerate(chance.sample(range(1, steps + 1), KILLS)):
        # Some go on where another was killed.
        to = tmp_path / str(kill // 2)
        killed = run_until(logs, to, step)
        if killed.returncode == 0:
            assert 1 == kill % 2, "only what goes on has less to do"
        else:
            assert -signal.SIGKILL == killed.returncode, killed.stderr
        assert is_a_beginning(logs, to)
        left.append(len(Archive(to).leftovers()))
    assert any(left)
    for kill in range(0, KILLS, 2):
        to = tmp_path / str(kill // 2)
        archive(None, str(logs), to, bytes_per_file=1)
        assert expected == archived_rows(to)
        assert [] == Archive(to).leftovers()


@pytest.mark.usefixtures("spark")
def test_killed_spark_driver_leaves_an_archive_that_can_be_continued(
    logs: Path, tmp_path: Path
) -> None:
    """
    Workers may continue for a moment; their files do no harm.
    """
    to = tmp_path / "archive"

    killed = run_until(logs, to, SECOND_COMMIT, "local[2]")

    assert -signal.SIGKILL == killed.returncode, killed.stderr
    assert is_a_beginning(logs, to)
    assert 0 < len(archived_rows(to)) < len(closed_rows(logs))
    archive(None, str(logs), to, bytes_per_file=1)
    assert closed_rows(logs) == archived_rows(to)


def test_killed_workers_are_retried_by_spark(
    spark: SparkSession, logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Ten workers die while they write, and Spark runs each task again. One dies a second time, so the
    run fails; the next run continues behind the last commit.
    """
    to, fuses = tmp_path / "archive", tmp_path / "fuses"
    chance = random.Random(43)
    wanted = [
        (plan.topic_partition, each.offsets.start)
        for plan in plan_archive(Archive(to), archive_options(str(logs), {}, 1))
        for each in plan.ranges
    ]
    victims = chance.sample(wanted[:-1], KILLS)
    for partition, start in victims:
        (fuses / f"{partition}@{start}").mkdir(parents=True)
        (fuses / f"{partition}@{start}" / chance.choice(POINTS)).touch()
    partition, start = wanted[-1]
    (fuses / f"{partition}@{start}").mkdir()
    for point in POINTS[:2]:
        (fuses / f"{partition}@{start}" / point).touch()

    with monkeypatch.context() as patched:
        patched.setattr(job, "_write_in_worker", dying_task(fuses))
        with pytest.raises(JobFailed, match="Python worker exited unexpectedly"):
            archive(spark, str(logs), to, bytes_per_file=1)

    assert [] == list(fuses.glob("*/*"))
    assert is_a_beginning(logs, to)
    assert archived_rows(to)
    assert archive(spark, str(logs), to, bytes_per_file=1).removed > 0
    assert closed_rows(logs) == archived_rows(to)


POINTS = ("read", "rename", "sync_directory")
"""What a worker dies instead of: reading, giving a file its name, being done with it."""


def dying_task(fuses: Path) -> Callable[..., Iterator[pa.RecordBatch]]:
    """
    Run a task whose worker dies once for each fuse of its range.

    The function is pickled by value, since workers do not have the tests.
    """
    write = parquet.write_range

    def write_or_die(
        store: DataStore, wanted: RangeToArchive, options: ReadOptions
    ) -> ArchiveCommit:
        of_range = fuses / f"{wanted.topic_partition}@{wanted.offsets.start}"
        fuse = next(of_range.glob("*"), None)
        if fuse is None:
            return write(store, wanted, options)

        def die(*_: Any, **__: Any) -> Any:
            fuse.unlink()
            os.kill(os.getpid(), signal.SIGKILL)

        owner: Any = parquet if fuse.name == "read" else DiskFiles
        with mock.patch.object(owner, fuse.name, die):
            return write(store, wanted, options)

    def task(*arguments: Any) -> Iterator[pa.RecordBatch]:
        with mock.patch.object(job, "write_range", write_or_die):
            yield from job._write_in_worker(*arguments)

    return task
