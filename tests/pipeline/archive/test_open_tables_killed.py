"""
Archiving into Delta and Iceberg tables that is killed, on the local disk and on S3, and in Parquet
on S3.

On S3 the server decides: it kills the client at a request, which it has done by then or never does.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from barnabas.pipeline.jobs.archive.commits import Archive
from barnabas.pipeline.storage import StorageOptions
from tests.pipeline.archive.archived import archived_rows, closed_rows
from tests.pipeline.archive.engines import delta_rows, iceberg_rows
from tests.pipeline.killed_at import CATALOG, PATIENCE, TABLE, catalog_properties, run_module
from tests.support.compiled import ROOT
from tests.support.s3_server import S3Server

pytestmark = pytest.mark.prove

pytest.importorskip("deltalake", reason="deltalake is not installed")
pytest.importorskip("pyiceberg", reason="pyiceberg is not installed")
pytest.importorskip("obstore", reason="obstore is not installed")
pytest.importorskip("moto", reason="moto is not installed")

Rows = list[tuple[Any, ...]]

FORMATS = ("delta", "iceberg")
KILLS = 6


class Target:
    def __init__(self, format: str, to: str, catalog: Path, storage: dict[str, str]) -> None:
        self.format = format
        self.to = to
        self._catalog = str(catalog)
        self._storage = storage

    @property
    def environment(self) -> dict[str, str]:
        return {CATALOG: self._catalog, **self._storage}

    def rows(self) -> Rows:
        if self.format == "parquet":
            return archived_rows(Archive(self.to, storage=StorageOptions.of(self._storage)))
        if self.format == "delta":
            from deltalake import DeltaTable  # noqa: PLC0415  # not all have it

            storage = {**self._storage, "AWS_ALLOW_HTTP": "true"}
            return (
                delta_rows(self.to, storage) if DeltaTable.is_deltatable(self.to, storage) else []
            )
        from pyiceberg.exceptions import NoSuchTableError  # noqa: PLC0415  # not all have it

        try:
            properties = catalog_properties(self.to, self._catalog)
            return iceberg_rows(TABLE, properties, self._iceberg_storage)
        except NoSuchTableError:
            return []

    @property
    def _iceberg_storage(self) -> dict[str, str]:
        names = {
            "AWS_ACCESS_KEY_ID": "s3.access-key-id",
            "AWS_SECRET_ACCESS_KEY": "s3.secret-access-key",
            "AWS_REGION": "s3.region",
            "AWS_ENDPOINT_URL": "s3.endpoint",
        }
        return {names[name]: value for name, value in self._storage.items()}


def is_a_beginning(expected: Rows, found: Rows) -> bool:
    for partition in {row[2:4] for row in found}:
        all_of_it = [row for row in expected if row[2:4] == partition]
        archived = [row for row in found if row[2:4] == partition]
        if archived != all_of_it[: len(archived)]:
            return False
    return True


@pytest.mark.parametrize("format", FORMATS)
def test_run_killed_on_a_disk_leaves_a_consistent_table(
    logs: Path, tmp_path: Path, format: str
) -> None:
    """
    The run dies at several steps, at every second one after another death.
    """

    def target(name: str) -> Target:
        return Target(format, str(tmp_path / name), tmp_path / f"{name}.db", {})

    def run(target: Target, step: int) -> subprocess.CompletedProcess[str]:
        job = f"archive-{format}"
        return run_module(
            "killed_at", job, logs, target.to, step, "-", environment=target.environment
        )

    whole = target("whole")
    ended = run(whole, -1)
    assert 0 == ended.returncode, ended.stderr
    steps = int(ended.stdout)
    expected = closed_rows(logs)
    assert expected == whole.rows()

    killed = 0
    for kill, step in enumerate(random.Random(43).sample(range(1, steps + 1), KILLS)):
        there = target(str(kill // 2))
        ended = run(there, step)
        killed += ended.returncode == -signal.SIGKILL
        assert ended.returncode in (0, -signal.SIGKILL), ended.stderr
        assert is_a_beginning(expected, there.rows())
    assert killed >= KILLS // 2
    for number in range(KILLS // 2):
        there = target(str(number))
        ended = run(there, -1)
        assert 0 == ended.returncode, ended.stderr
        assert expected == there.rows()


@pytest.mark.parametrize("format", ["parquet", *FORMATS])
def test_run_killed_at_an_s3_request_leaves_a_consistent_table(
    logs: Path, tmp_path: Path, s3: S3Server, format: str
) -> None:
    """
    The run dies at a request; the server has carried out half of these requests.
    """

    def target(name: str) -> Target:
        url = s3.url(f"{format}/{name}")
        return Target(format, url, tmp_path / f"{name}.db", dict(s3.storage))

    whole = target("whole")
    assert 0 == run_on_s3(s3, logs, whole)
    steps = len(s3.requests)
    expected = closed_rows(logs)
    assert expected == whole.rows()

    chance = random.Random(43)
    killed = 0
    for kill, step in enumerate(chance.sample(range(1, steps + 1), KILLS)):
        there = target(str(kill // 2))
        status = run_on_s3(s3, logs, there, step, done=chance.random() < 0.5)
        killed += status == -signal.SIGKILL
        assert status in (0, -signal.SIGKILL)
        assert is_a_beginning(expected, there.rows())
    assert killed >= KILLS // 2
    for number in range(KILLS // 2):
        there = target(str(number))
        assert 0 == run_on_s3(s3, logs, there)
        assert expected == there.rows()


def run_on_s3(
    s3: S3Server, logs: Path, target: Target, step: int = -1, *, done: bool = True
) -> int:
    arguments = (f"archive-{target.format}", str(logs), target.to, "-1", "-")
    s3.count()
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.pipeline.killed_at", *arguments],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        env={**os.environ, **target.environment},
    )
    # It takes longer to start than this.
    s3.count(kill=process.pid, step=step, done=done)
    return process.wait(PATIENCE)
