"""
A cluster of Spark on this machine: a standalone master and its workers, each a process.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import pyspark

from tests.support.maven import PrerequisiteMissing
from tests.support.spark import QUICK
from tests.support.wheel import variables

SPARK_HOME: Final = Path(pyspark.__file__).parent

SETTINGS: Final = {
    "spark.cores.max": "2",
    "spark.driver.extraJavaOptions": QUICK,
    "spark.driver.memory": "512m",
    "spark.executor.extraJavaOptions": QUICK,
    "spark.executor.memory": "512m",
    "spark.log.level": "ERROR",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s",
    "spark.scheduler.minRegisteredResourcesRatio": "1",
    "spark.sql.session.timeZone": "UTC",
    "spark.task.maxFailures": "1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
"""What keeps an application small, and has it begin when both workers are there."""


@dataclass(frozen=True)
class SparkCluster:
    master: str
    """As ``--master`` takes it."""
    directory: Path

    def ran(self, *command: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
        """
        Run a command to its end with the given environment *variables*.
        """
        return subprocess.run(
            list(map(str, command)),
            env=_environment() | variables,
            cwd=self.directory,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )


def conf(settings: Mapping[str, str]) -> list[str]:
    return [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]


@contextmanager
def spark_cluster(directory: Path, workers: int = 2) -> Iterator[SparkCluster]:
    """
    A master and *workers* of one core each, on ports that are free.

    Raises:
        PrerequisiteMissing: there is no Java.
    """
    with ExitStack() as stack:
        master = stack.enter_context(_daemon(directory, "master", "master.Master", "--port", "0"))
        url = _awaited(master, r"Starting Spark master at (spark://\S+)")
        started = []
        for number in range(workers):
            name = f"worker-{number}"
            options = ("--cores", "1", "--memory", "1g", "--work-dir", str(directory / name), url)
            started.append(stack.enter_context(_daemon(directory, name, "worker.Worker", *options)))
        for worker in started:
            _awaited(worker, r"(Successfully registered)")
        yield SparkCluster(url, directory)


class _Daemon(NamedTuple):
    process: subprocess.Popen[bytes]
    log: Path


@contextmanager
def _daemon(directory: Path, name: str, kind: str, *options: str) -> Iterator[_Daemon]:
    java = shutil.which("java")
    if java is None:
        raise PrerequisiteMissing("no java on the path (Spark needs 17 or newer)")
    command = [java, *QUICK.split(), "-Xmx256m", "-cp", f"{SPARK_HOME}/jars/*"]
    command += [f"org.apache.spark.deploy.{kind}", "--host", "127.0.0.1", "--webui-port", "0"]
    log = directory / f"{name}.log"
    with log.open("w") as written:
        process = subprocess.Popen(
            [*command, *options], env=_environment(), cwd=directory, stdout=written, stderr=written
        )
    try:
        yield _Daemon(process, log)
    finally:
        process.terminate()
        process.wait(30)


def _environment() -> dict[str, str]:
    # What the scripts of Spark would find out, with one virtual machine more for each daemon.
    (core,) = (SPARK_HOME / "jars").glob("spark-core_*.jar")
    inherited = {name: text for name, text in variables().items() if "PYSPARK" not in name}
    return inherited | {
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_SCALA_VERSION": core.name.split("_")[1].split("-")[0],
    }


def _awaited(daemon: _Daemon, pattern: str) -> str:
    """
    Wait for a line in the log of a daemon.

    Raises:
        AssertionError: the daemon has ended, or took more than two minutes.
    """
    until = time.monotonic() + 120
    while time.monotonic() < until:
        found = re.search(pattern, daemon.log.read_text())
        if found:
            return found[1]
        try:
            daemon.process.wait(0.1)
        except subprocess.TimeoutExpired:
            continue
        break
    raise AssertionError(daemon.log.read_text())
