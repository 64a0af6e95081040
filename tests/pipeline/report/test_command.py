from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from barnabas.server.cli import main

pytestmark = [pytest.mark.spark, pytest.mark.prove]


def test_dry_run_prints_what_would_be_read(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = logs / "page.html"
    arguments = ("--data-dir", str(logs), "times", "keys-0", "--html", str(page), "--dry-run")

    assert 0 == main(["spark", "report", *arguments])
    out, said = capsys.readouterr()
    assert "" == out
    assert said.startswith(f"Report on 3 partitions in {logs}, as of ")
    assert "all their records, in 6 segments of " in said
    assert f"A page goes to {page}" in said
    assert not page.exists()


def test_report_is_printed_and_its_page_written(
    spark: SparkSession, logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    arguments = ["--data-dir", str(logs), "times-0", "--html", str(page), "--headers-only"]

    assert 0 == main(["spark", "report", *arguments, "--set", "retention.ms=1000"])
    out, said = capsys.readouterr()
    assert "but no records" in said
    assert "retention.ms 1 second" in out
    assert "keys:" not in out
    assert "times-0" in page.read_text()
    assert 1 == spark.range(1).count()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["tims"], "did you mean times?"),
        (["--at", "soon"], "'soon' is not a time"),
        (["--set", "retention.ms=x"], "retention.ms"),
    ],
)
def test_invalid_report_arguments_are_refused_before_spark_starts(
    logs: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    assert 0 != main(["spark", "report", "--data-dir", str(logs), *arguments])
    assert sentence in capsys.readouterr().err


def test_directory_without_topics_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert 1 == main(["spark", "report", "--data-dir", str(tmp_path)])
    assert "no topics" in capsys.readouterr().err


@pytest.mark.parametrize("module", ["pyspark", "pyarrow"])
def test_missing_report_extra_is_reported_with_its_install_command(logs: Path, module: str) -> None:
    program = (
        f"import sys; sys.modules[{module!r}] = None;"
        "from barnabas.server.cli import main; sys.exit(main(sys.argv[1:]))"
    )

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", program, "spark", *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    failed = run("report", "--data-dir", str(logs))
    assert 1 == failed.returncode
    assert f"barnabas: there is no {module} here: pip install 'barnabas[spark]'\n" == failed.stderr
    assert 0 == run("report", "--help").returncode
