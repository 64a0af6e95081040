"""
The archive of classes with which the tests start Apache Kafka's clients and tools.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.apache_kafka import QUICK, java
from tests.support.class_archive import archive_options, with_archive

pytestmark = pytest.mark.prove

PRINTS_A_UUID = ("kafka.tools.StorageTool", "random-uuid")
SHARED = "org.apache.kafka.common.Uuid source: shared objects file (top)"


@pytest.fixture(scope="module", name="archive")
def make_archive() -> tuple[str, ...]:
    if "KAFKA_CLASSPATH" in os.environ:
        pytest.skip("there is an archive for jars only")
    return archive_options()


def printed(*options: str) -> str:
    command = java(*PRINTS_A_UUID, options=(*QUICK, *options))
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


def test_classes_are_loaded_from_the_archive(archive: tuple[str, ...]) -> None:
    assert SHARED in printed(*archive, "-Xlog:class+load=info:stdout")


def test_unsuitable_class_archive_is_silently_ignored(tmp_path: Path) -> None:
    other = tmp_path / "classes.jsa"
    other.write_bytes(b"no archive")

    said = printed(*with_archive(other))

    assert 22 == len(said.strip()), said
