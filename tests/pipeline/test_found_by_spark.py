from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from barnabas.pipeline import register
from tests.support.compiled import ROOT
from tests.support.log_directory import WrittenDirectory, append, some_records

pytestmark = [pytest.mark.spark, pytest.mark.prove]

PROGRAMS = Path(pyspark.__file__).parent / "bin"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = WrittenDirectory(tmp_path_factory.mktemp("logs"))
    append(directory.log("orders"), some_records(10))
    directory.stop()
    return directory.path


def test_spark_session_finds_the_source(session: SparkSession, path: Path) -> None:
    options = {"subscribe": "orders", "startingOffsets": "earliest"}

    assert 10 == session.read.format("barnabas").options(**options).load(str(path)).count()
    stream = session.readStream.format("barnabas").options(**options).load(str(path))
    query = (
        stream.writeStream.format("memory").queryName("found").trigger(availableNow=True).start()
    )
    query.awaitTermination(60)
    assert 10 == session.table("found").count()


def test_sql_view_takes_the_source_options(session: SparkSession, path: Path) -> None:
    session.sql(
        f"CREATE TEMPORARY VIEW orders USING barnabas OPTIONS (path '{path}', subscribe 'orders')"
    )

    rows = session.sql("SELECT offset FROM orders WHERE offset < 3 ORDER BY offset").collect()

    assert [0, 1, 2] == [row.offset for row in rows]


def test_source_can_be_registered_again(session: SparkSession, path: Path) -> None:
    register(session)

    assert 10 == session.read.format("barnabas").load(str(path)).count()


def test_spark_submit_finds_the_source(path: Path, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "spark.md").read_text()
    (example, *_) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    program = example.replace('"/tmp/data"', repr(str(path)))
    assert str(path) in program
    submit = PROGRAMS / "spark-submit"
    options = ("--master", "local[1]", "--conf", "spark.ui.enabled=false")

    shown = ran(tmp_path, program, submit, *options)

    rows = [line for line in shown.splitlines() if line.startswith("|")]
    assert 11 == len(rows)
    assert re.search(r"\b0+7\b", rows[8])


def test_spark_connect_finds_the_source(path: Path, tmp_path: Path) -> None:
    """
    The server has the source, also in SQL. ``SPARK_TESTING`` makes it choose a free port.
    """
    pytest.importorskip("grpc", reason="pyspark[connect] is not installed")
    program = f"""if True:
        import os
        os.environ["SPARK_TESTING"] = "1"
        from pyspark.sql import SparkSession
        spark = SparkSession.builder.remote("local[1]").getOrCreate()
        print(type(spark).__module__)
        print(spark.read.format("barnabas").load({str(path)!r}).count())
        spark.sql("CREATE TEMPORARY VIEW orders USING barnabas OPTIONS (path '{path}')")
        print(spark.sql("SELECT max(offset) AS last FROM orders").first().last)
        spark.stop()
    """

    shown = ran(tmp_path, program, sys.executable)

    assert ["pyspark.sql.connect.session", "10", "9"] == shown.split()


def ran(folder: Path, program: str, *command: str | Path) -> str:
    file = folder / "program.py"
    file.write_text(program)
    of_spark = {
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_HOME": str(PROGRAMS.parent),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    done = subprocess.run(
        [*command, file],
        env=os.environ | of_spark,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert 0 == done.returncode, done.stderr[-2000:]
    return done.stdout
