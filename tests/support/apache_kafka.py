"""
Apache Kafka itself: its jars, fetched once from Maven Central, and a broker made of them.

Whoever has the jars already says where in ``KAFKA_CLASSPATH`` (a class path as ``java -cp`` takes
it); otherwise Maven copies them into a cache directory of the user, 55 MB, in about ten seconds.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.support.broker_process import BrokerProcess, free_port

VERSION = "4.3.1"
CLUSTER_ID = "AAAAAAAAAAAAAAAAAAAAAQ"

_ARTIFACTS = {
    "org.apache.kafka:kafka_2.13": VERSION,
    "org.apache.kafka:kafka-tools": VERSION,
    "org.apache.logging.log4j:log4j-slf4j-impl": "2.24.3",
}

_LOGGING = """<Configuration status="ERROR">
  <Appenders><Console name="out" target="SYSTEM_ERR">
    <PatternLayout pattern="[%d] %p %m (%c)%n"/>
  </Console></Appenders>
  <Loggers><Root level="{level}"><AppenderRef ref="out"/></Root></Loggers>
</Configuration>
"""


class PrerequisiteMissing(Exception):
    """
    What these programs need is not on this machine; the message says what, in one line.
    """


def require_java() -> None:
    """
    Raises:
        PrerequisiteMissing: there is no Java to run, or no compiler.
    """
    for program in ("java", "javac"):
        if shutil.which(program) is None:
            raise PrerequisiteMissing(f"no {program} on the path (a JDK of 17 or newer is needed)")


def class_path() -> str:
    """
    The class path of Apache Kafka's broker, clients and tools.

    Raises:
        PrerequisiteMissing: there is no Java, or Maven is missing or could not fetch the jars.
    """
    require_java()
    given = os.environ.get("KAFKA_CLASSPATH")
    return given if given else f"{_fetched('libs', _ARTIFACTS)}/*"


def library(name: str) -> str:
    """
    The class path of one more library of Apache Kafka, such as ``kafka-streams``, with all that it
    needs; it goes beside `class_path`.

    Raises:
        PrerequisiteMissing: there is no Java, or Maven is missing or could not fetch the jars.
    """
    require_java()
    return f"{_fetched(name, {f'org.apache.kafka:{name}': VERSION})}/*"


def java(
    main_class: str,
    *arguments: str,
    heap: str = "256m",
    level: str = "warn",
    options: tuple[str, ...] = (),
    extra_class_path: str = "",
) -> list[str]:
    """
    The command that runs a class of Apache Kafka, or one of ours beside its jars.

    Args:
        heap: the most memory for objects, as ``-Xmx`` takes it.
        level: from which level on it logs, to standard error.
        options: further options of the virtual machine.
    """
    path = f"{extra_class_path}{os.pathsep}{class_path()}" if extra_class_path else class_path()
    logging = f"-Dlog4j2.configurationFile={_logging_file(level)}"
    return ["java", f"-Xmx{heap}", *options, logging, "-cp", path, main_class, *arguments]


class ApacheKafka(BrokerProcess):
    """
    One node of Apache Kafka, broker and controller in one process.
    """

    name = "Apache Kafka"
    start_timeout = 120.0

    def __init__(
        self,
        directory: Path,
        *,
        port: int | None = None,
        settings: Mapping[str, str] | None = None,
        heap: str = "512m",
        bounded: bool = True,
    ) -> None:
        super().__init__(directory, port=port, settings=settings, bounded=bounded)
        self.heap = heap
        self._controller_port = free_port()

    def command(self) -> list[str]:
        properties = self.directory / "server.properties"
        options = ("-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20")
        return java("kafka.Kafka", str(properties), heap=self.heap, level="info", options=options)

    def prepare(self) -> None:
        properties = self.directory / "server.properties"
        properties.write_text("".join(f"{k}={v}\n" for k, v in self._properties().items()))
        if not (self.data / "meta.properties").exists():
            format_it = ("format", "-t", CLUSTER_ID, "-c", str(properties))
            subprocess.run(
                java("kafka.tools.StorageTool", *format_it),
                check=True,
                stdout=subprocess.DEVNULL,
            )

    def is_ready(self) -> bool:
        return "Kafka Server started" in self.log_since_start() and super().is_ready()

    def _properties(self) -> dict[str, str]:
        node_id = self.settings.get("node.id", "1")
        listener = f"PLAINTEXT://127.0.0.1:{self.port}"
        return {
            "process.roles": "broker,controller",
            "node.id": node_id,
            "listeners": f"{listener},CONTROLLER://127.0.0.1:{self._controller_port}",
            "advertised.listeners": listener,
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "controller.quorum.voters": f"{node_id}@127.0.0.1:{self._controller_port}",
            "log.dirs": str(self.data),
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            **self.settings,
        }


def _cache() -> Path:
    root = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(root) / "barnabas" / f"apache-kafka-{VERSION}"


def _logging_file(level: str) -> Path:
    path = _cache() / f"{level}.xml"
    with _alone():
        if not path.exists():
            path.write_text(_LOGGING.format(level=level.upper()))
    return path


@contextmanager
def _alone() -> Iterator[None]:
    """
    Nobody else writes to the cache meanwhile, as tests in several processes would.
    """
    _cache().mkdir(parents=True, exist_ok=True)
    with (_cache() / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _fetched(name: str, artifacts: Mapping[str, str]) -> Path:
    """
    The directory of that *name* with the jars of *artifacts*, fetched if this is the first time.
    """
    libraries = _cache() / name
    complete = _cache() / ("complete" if name == "libs" else f"{name}.complete")
    if not complete.exists():
        with _alone():
            if not complete.exists():
                _fetch(libraries, artifacts)
                complete.touch()
    return libraries


def _fetch(libraries: Path, artifacts: Mapping[str, str]) -> None:
    if shutil.which("mvn") is None:
        raise PrerequisiteMissing(
            "no mvn on the path to fetch Apache Kafka's jars, and KAFKA_CLASSPATH is not set"
        )
    libraries.mkdir(exist_ok=True)
    (libraries / "pom.xml").write_text(_pom(artifacts))
    copy = ["mvn", "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={libraries}"]
    try:
        subprocess.run(copy, cwd=libraries, check=True, capture_output=True, text=True, timeout=600)
    except subprocess.CalledProcessError as error:
        first = (error.stdout or error.stderr).strip().splitlines()[:1]
        raise PrerequisiteMissing(f"Maven cannot fetch Apache Kafka's jars: {first}") from error


def _pom(artifacts: Mapping[str, str]) -> str:
    dependencies = ""
    for artifact, version in artifacts.items():
        group, name = artifact.split(":")
        dependencies += (
            f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId>"
            f"<version>{version}</version></dependency>\n"
        )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0">\n<modelVersion>4.0.0</modelVersion>\n'
        "<groupId>local</groupId><artifactId>kafka</artifactId><version>1</version>\n"
        f"<dependencies>\n{dependencies}</dependencies>\n</project>\n"
    )
