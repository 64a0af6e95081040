"""
``docs/spark.md``: the examples run as they stand. Those with a broker are in ``live``.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from barnabas.pipeline.jobs.archive.job import archive
from tests.support.compiled import ROOT
from tests.support.log_directory import WrittenDirectory, append, some_records

pytestmark = [pytest.mark.spark, pytest.mark.prove]

PAGE = (ROOT / "docs" / "spark.md").read_text()


def examples(language: str, paths: dict[str, Path]) -> list[str]:
    found = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    found = [example for example in found if "bootstrap" not in example]
    return [re.sub(r"/tmp/\w+", lambda match: str(paths[match[0]]), example) for example in found]


@pytest.fixture
def paths(tmp_path: Path) -> dict[str, Path]:
    directory = WrittenDirectory(tmp_path / "data")
    log = directory.log("orders")
    for start in (0, 10):
        append(log, some_records(10, start=start))
        log.roll()
    append(log, some_records(3, start=20))
    directory.stop()
    archive(None, str(directory.path), tmp_path / "archive")
    return {f"/tmp/{name}": tmp_path / name for name in ("data", "archive", "orders")}


def test_documented_programs_run(
    spark: SparkSession, paths: dict[str, Path], capfd: pytest.CaptureFixture[str]
) -> None:
    programs = examples("python", paths)
    names: dict[str, Any] = {}

    for program in programs:
        exec(program, names)  # what a reader does

    assert len(programs) >= 6
    assert spark is names["spark"]
    shown = capfd.readouterr().out
    assert f"{0:020d}" in shown
    assert 23 == spark.read.parquet(str(paths["/tmp/orders"])).count()
    assert re.search(r"\n[1-9][0-9]*\n$", shown), "the bytes of all values"


def test_documented_sql_view_works(spark: SparkSession, paths: dict[str, Path]) -> None:
    session = spark.newSession()
    (example,) = examples("sql", paths)

    make, ask, _ = example.split(";")

    session.sql(make)
    assert [(0, 23)] == [tuple(row) for row in session.sql(ask).collect()]
