"""
A killed compaction leaves each topic in its old or its new state, and the next run completes it.
"""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from barnabas.pipeline.jobs.compact.job import compact
from barnabas.pipeline.jobs.compact.snapshots import Snapshots
from tests.pipeline.compact.compacted import compacted_rows, latest_rows, random_logs
from tests.pipeline.killed_at import run_module
from tests.support.log_directory import WrittenDirectory, append, some_records
from tests.support.some import some

pytestmark = pytest.mark.prove

KILLS = 6


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return random_logs(tmp_path_factory.mktemp("logs"), appends=30)


def run_until(logs: Path, to: Path, step: int) -> subprocess.CompletedProcess[str]:
    """
    Compact in a separate process that dies at the given step.
    """
    return run_module("killed_at", "compact", logs, to, step, "-")


def test_killed_run_can_be_repeated(logs: Path, tmp_path: Path) -> None:
    """
    The run dies at six steps, sometimes twice.
    """
    whole = run_until(logs, tmp_path / "whole", -1)
    assert 0 == whole.returncode, whole.stderr
    expected = latest_rows(logs)
    assert expected == compacted_rows(tmp_path / "whole")

    chance = random.Random(43)
    left, resumed = [], []
    for kill, step in enumerate(sorted(chance.sample(range(1, int(whole.stdout) + 1), KILLS))):
        to = tmp_path / str(kill // 2)
        killed = run_until(logs, to, step)
        assert -signal.SIGKILL == killed.returncode or kill % 2, killed.stderr
        topics = {row[2] for row in compacted_rows(to)}
        assert [row for row in expected if row[2] in topics] == compacted_rows(to)
        left.append(len(Snapshots(to).leftovers()))

    for kill in range(0, KILLS, 2):
        to = tmp_path / str(kill // 2)
        done = compact(None, str(logs), to)
        resumed.append(len(done.partitions))
        assert expected == compacted_rows(to)
        assert [] == Snapshots(to).leftovers()
        assert {} == Snapshots(to).done
    assert any(left)
    # What was done is not done again.
    assert 0 < len([count for count in resumed if count < 3])


def test_killed_replacement_leaves_the_old_or_the_new_snapshot(tmp_path: Path) -> None:
    directory = WrittenDirectory(tmp_path / "logs")
    for partition in range(2):
        append(directory.log("events", partition), some_records(20))
    directory.checkpoint()
    before = tmp_path / "before"
    compact(None, str(directory.path), before)
    old = compacted_rows(before)
    for log in directory.logs.values():
        append(log, some_records(20, start=10))
    directory.stop()
    new = latest_rows(directory.path)
    assert 0 < len(old) < len(new)
    steps = int(run_until(directory.path, copied(before, tmp_path / "whole"), -1).stdout)

    found = []
    for step in (2, steps // 2, steps - 1, steps):
        to = copied(before, tmp_path / str(step))
        assert -signal.SIGKILL == run_until(directory.path, to, step).returncode
        found.append(compacted_rows(to))
        compact(None, str(directory.path), to)
        assert new == compacted_rows(to)
        assert 2 == len(list(to.rglob("*.parquet")))
    assert [old, new] == [found[0], found[-1]]
    assert all(rows in (old, new) for rows in some(found))


def copied(path: Path, to: Path) -> Path:
    shutil.copytree(path, to)
    return to
