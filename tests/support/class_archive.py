"""
An archive of the classes of Apache Kafka, with which its clients and tools start in half the time.

Loading and checking classes is most of what a start costs. Java keeps them in a file as they are in
memory, once a program has loaded them (JEP 350): a rehearsal of what the tests do. Java takes only
an archive that it has made itself of the same jars, and does without one otherwise.
"""

from __future__ import annotations

import subprocess
import tempfile
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Final

from tests.support.broker_process import free_port
from tests.support.kafka_jars import QUICK, cache_directory, class_path
from tests.support.maven import alone

SOURCE: Final = Path(__file__).parents[1] / "interop" / "java" / "Rehearsal.java"

_QUIET: Final = ("-Xlog:disable", "-Xlog:all=error:stderr")
"""
Java says what is wrong with an archive on its standard output, where tests read what tools print.
"""
_PATIENCE: Final = 300

_PROPERTIES: Final = """
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
controller.quorum.voters=1@127.0.0.1:{controller_port}
log.dirs={directory}/data
group.initial.rebalance.delay.ms=0
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
"""


@cache
def archive_options() -> tuple[str, ...]:
    """
    The options that let a virtual machine use the archive, which is made if there is none; no
    options if it cannot be made, as with a class path of directories.

    Raises:
        PrerequisiteMissing: there is no Java, or Maven is missing or could not fetch the jars.
    """
    archives = cache_directory() / "classes"
    archive = archives / f"{_fingerprint()}.jsa"
    with alone(archives):
        if not archive.exists():
            with tempfile.TemporaryDirectory(dir=archives) as directory:
                made = _rehearse(Path(directory))
                if made.exists():
                    made.rename(archive)
    return with_archive(archive) if archive.exists() else ()


def with_archive(archive: Path) -> tuple[str, ...]:
    """
    The options that let a virtual machine use an *archive* if it fits, and print nothing of it.
    """
    return (f"-XX:SharedArchiveFile={archive}", *_QUIET)


def _fingerprint() -> str:
    """
    Digits that change with Java, the jars, and what is rehearsed.
    """
    java = subprocess.run(["java", "-version"], capture_output=True, check=True).stderr
    contents = (java, class_path().encode(), SOURCE.read_bytes(), " ".join(QUICK).encode())
    return sha256(b"\0".join(contents)).hexdigest()[:16]


def _rehearse(directory: Path) -> Path:
    """
    The archive that a rehearsal in *directory* leaves, if it is one.
    """
    archive, properties = directory / "classes.jsa", directory / "server.properties"
    port, controller_port = free_port(), free_port()
    properties.write_text(
        _PROPERTIES.format(port=port, controller_port=controller_port, directory=directory)
    )
    options = ["-Xmx512m", *QUICK, *_QUIET, f"-XX:ArchiveClassesAtExit={archive}"]
    command = ["java", *options, "-cp", class_path(), str(SOURCE)]
    subprocess.run(
        [*command, str(properties), f"127.0.0.1:{port}"],
        capture_output=True,
        timeout=_PATIENCE,
        check=False,
    )
    return archive
