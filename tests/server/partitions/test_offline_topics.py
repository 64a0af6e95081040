"""
Topics read from the files of the metadata log, without opening it.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from barnabas.server.cluster.offline_topics import read_topics
from barnabas.storage.fs.disk import DiskFiles
from barnabas.storage.readonly.log_root import LogRoot
from barnabas.storage.state_files.file_names import CLUSTER_METADATA_TOPIC
from tests.support.some import some

FILES = DiskFiles()
LOG = f"{CLUSTER_METADATA_TOPIC}-0"


def copied(golden: Path, name: str, target: Path) -> LogRoot:
    shutil.copytree(golden / name / "data" / LOG, target / LOG)
    return LogRoot(target, FILES)


@pytest.mark.parametrize("name", ["metadata", "segments"])
def test_offline_topics_are_those_of_the_metadata_log(
    golden: Path, tmp_path: Path, name: str
) -> None:
    before = {path: path.read_bytes() for path in (golden / name / "data" / LOG).iterdir()}

    topics = read_topics(copied(golden, name, tmp_path))

    assert topics is not None
    logs = {f"{topic}-{number}" for topic, known in topics.items() for number in known.replicas}
    assert logs == {
        path.name
        for path in (golden / name / "data").iterdir()
        if path.is_dir() and path.name != LOG
    }
    assert {path.name for path in before} == {path.name for path in (tmp_path / LOG).iterdir()}
    for path, data in some(before.items()):
        assert data == (tmp_path / LOG / path.name).read_bytes()


def test_configs_of_topics_are_known(golden: Path, tmp_path: Path) -> None:
    topics = read_topics(copied(golden, "metadata", tmp_path))

    assert topics is not None
    assert {"retention.ms": "4000", "cleanup.policy": "compact"} == dict(topics["topic-3"].configs)
    (replicas,) = topics["topic-3"].replicas.values()
    assert [1] == list(replicas)


def test_directory_without_a_metadata_log_has_no_topics(tmp_path: Path) -> None:
    assert read_topics(LogRoot(tmp_path, FILES)) is None


def test_damaged_metadata_log_is_not_used(golden: Path, tmp_path: Path) -> None:
    root = copied(golden, "segments", tmp_path)
    segment = tmp_path / LOG / f"{0:020d}.log"
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 1
    segment.write_bytes(data)

    assert read_topics(root) is None
