"""
``docs/spark-cluster.md``: reading and archiving on a standalone cluster, with the environment
shipped to its workers. The commands are those of the page.

Each application takes seconds to start, so that there are few.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow
import pytest

from barnabas.pipeline import scan
from barnabas.pipeline.jobs.archive.commits import Archive
from barnabas.pipeline.jobs.archive.job import archive
from tests.support.compiled import ROOT
from tests.support.log_directory import WrittenDirectory, append, some_records
from tests.support.spark_cluster import SETTINGS, SPARK_HOME, SparkCluster, conf, spark_cluster

pytestmark = [pytest.mark.interop, pytest.mark.spark, pytest.mark.prove]

PAGE = (ROOT / "docs" / "spark-cluster.md").read_text()
PARTITIONS = 4
TASKS = 2 * PARTITIONS
"""One for each segment, with the options that are given."""


class File(NamedTuple):
    partition: str
    start_offset: int
    end_offset: int
    crc32c: int


NEEDED_BY_SPARK = ("pyarrow", "numpy", "pandas", "dateutil", "pytz", "six", "tzdata")
"""What the Python of a worker has in any case."""

READS = """
import json, os, sys
import pyarrow as pa
from pyspark.sql import SparkSession
from barnabas.pipeline import archive

logs, to = sys.argv[1:]
spark = SparkSession.builder.getOrCreate()
orders = spark.read.format("barnabas").option("openCostInBytes", "64m").load(logs)

def where(batches):
    for batch in batches:
        rows = [
            (row["partition"], row["offset"], row["value"].decode()) for row in batch.to_pylist()
        ]
        task = {"place": os.getcwd(), "python": sys.executable, "rows": rows}
        yield pa.RecordBatch.from_pydict({"task": [json.dumps(task)]})

tasks = [json.loads(row.task) for row in orders.mapInArrow(where, "task string").collect()]
archived = archive(spark, logs, to, bytes_per_file=1)
print(json.dumps({"tasks": tasks, "archived": archived.records}))
spark.stop()
"""

FAILS = """
import sys
from pyspark.sql import SparkSession
from barnabas.pipeline import archive

logs, to = sys.argv[1:]
spark = SparkSession.builder.getOrCreate()
for query in (
    lambda: spark.read.format("barnabas").load(logs).count(),
    lambda: archive(spark, logs, to),
):
    try:
        query()
    except Exception as error:
        print(str(error))
    print("--")
spark.stop()
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    with spark_cluster(tmp_path_factory.mktemp("cluster")) as running:
        environment(running.directory, "environment", sys.path)
        yield running


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = WrittenDirectory(tmp_path_factory.mktemp("logs"))
    for partition in range(PARTITIONS):
        log = directory.log("orders", partition)
        append(log, some_records(10))
        log.roll()
        append(log, some_records(3, start=10))
    directory.stop()
    return directory.path


@pytest.fixture(scope="module")
def expected(logs: Path, tmp_path_factory: pytest.TempPathFactory) -> list[File]:
    to = tmp_path_factory.mktemp("here")
    archive(None, str(logs), to, bytes_per_file=1)
    return files_of(to)


def environment(directory: Path, name: str, paths: list[str]) -> Path:
    """
    An environment with the packages in *paths*, and the same environment packed.
    """
    place = directory / name
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True)
    (packages,) = (place / "lib").glob("python*/site-packages")
    (packages / "test.pth").write_text("\n".join(path for path in paths if path))
    packed = directory / f"{name}.tar.gz"
    with tarfile.open(packed, "w:gz", compresslevel=1) as tar:
        tar.add(place, ".")
    return packed


def files_of(to: Path) -> list[File]:
    commits = [commit for each in Archive(to).commits.values() for commit in each]
    return sorted(
        File(str(each.topic_partition), each.start_offset, each.end_offset, each.crc32c)
        for each in commits
    )


def submitted(
    cluster: SparkCluster, program: str, environment: str, *arguments: Path
) -> subprocess.CompletedProcess[str]:
    file = cluster.directory / "program.py"
    file.write_text(program)
    (python,) = re.findall(r"^export PYSPARK_PYTHON=(.*)", PAGE, re.MULTILINE)
    command = command_of_the_page("spark-submit", cluster)
    assert "program.py" == command.pop()
    assert "environment.tar.gz#environment" in command
    command = [word.replace("environment.tar.gz", f"{environment}.tar.gz") for word in command]
    command[0] = str(SPARK_HOME / "bin" / command[0])
    command += [*conf(SETTINGS), str(file), *map(str, arguments)]
    return cluster.ran(*command, PYSPARK_PYTHON=python)


def command_of_the_page(name: str, cluster: SparkCluster) -> list[str]:
    (command,) = re.findall(rf"^{name} (?:.*\\\n)*.*", PAGE, re.MULTILINE)
    whole = command.replace("\\\n", " ").replace("spark://master:7077", cluster.master)
    return shlex.split(whole)


def test_submitted_program_reads_and_archives_with_all_workers(
    cluster: SparkCluster, logs: Path, expected: list[File], tmp_path: Path
) -> None:
    done = submitted(cluster, READS, "environment", logs, tmp_path / "archive")

    assert 0 == done.returncode, done.stderr
    shown: dict[str, Any] = json.loads(done.stdout)
    here = [
        [row["partition"], row["offset"], row["value"].decode()]
        for batch in scan(str(logs), columns=["partition", "offset", "value"])
        for row in batch.to_pylist()
    ]
    assert here == sorted(row for task in shown["tasks"] for row in task["rows"])
    assert TASKS == len(shown["tasks"])
    workers = {
        Path(task["place"]).relative_to(cluster.directory).parts[0] for task in shown["tasks"]
    }
    assert {"worker-0", "worker-1"} == workers
    for task in shown["tasks"]:
        assert f"{task['place']}/environment/bin/python" == task["python"]
    assert expected == files_of(tmp_path / "archive")
    assert 10 * PARTITIONS == shown["archived"]


def test_job_runs_on_a_cluster_given_by_its_master_url(
    cluster: SparkCluster, logs: Path, expected: list[File], tmp_path: Path
) -> None:
    to = tmp_path / "archive"
    places = {"/mnt/logs": str(logs), "/mnt/archive": str(to)}
    _, *words = command_of_the_page("barnabas spark archive", cluster)
    words = [places.get(word, word) for word in words]
    assert {*places.values()} <= {*words}
    words += ["--file-bytes", "1", "--memory", "512m", *conf(SETTINGS)]

    done = cluster.ran(sys.executable, "-m", "barnabas.server", *words)

    assert 0 == done.returncode, done.stderr
    assert "Archived 40 records" in done.stdout
    assert expected == files_of(to)


def test_executor_without_the_package_ends_a_query_with_one_line(
    cluster: SparkCluster, logs: Path, tmp_path: Path
) -> None:
    others = tmp_path / "others"
    others.mkdir()
    packages = Path(pyarrow.__file__).parent.parent
    for name in NEEDED_BY_SPARK:
        for path in packages.glob(f"{name}*"):
            (others / path.name).symlink_to(path)
    environment(cluster.directory, "bare", [str(others)])

    done = submitted(cluster, FAILS, "bare", logs, tmp_path / "archive")

    assert 0 == done.returncode, done.stderr
    read, archived, _ = done.stdout.split("--\n")
    sentence = "has no package barnabas: ship the environment, docs/spark-cluster.md."
    assert sentence in read
    assert "Traceback" not in read
    assert archived.startswith(f"The Python of this executor, {cluster.directory}/worker-")
    assert archived.endswith(f"{sentence}\n")
    assert 1 == archived.count("\n")
