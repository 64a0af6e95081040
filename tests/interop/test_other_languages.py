"""
A client that is built on none of the others: kafkajs, in JavaScript.

It is driven by a small program, which creates a topic, sends to it in every codec that the client
has, aborts a transaction and commits another, reads everything in a group and commits.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.interop.committed import group_offsets
from tests.interop.conftest import needs_program
from tests.support.broker_process import BrokerProcess
from tests.support.maven import PrerequisiteMissing
from tests.support.some import some

HERE = Path(__file__).parent
PATIENCE = 90
PER_NAME = 10


class Line(NamedTuple):
    """
    What a program says of a record that its group has read.
    """

    partition: int
    offset: int
    key: str
    value: str
    header: str


@pytest.fixture(scope="module")
def node_clients(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """
    The program that is written in JavaScript, with the library beside it.
    """
    needs_program("node")
    needs_program("npm")
    directory = tmp_path_factory.mktemp("node")
    shutil.copytree(HERE / "node", directory, dirs_exist_ok=True)
    _prepare(["npm", "install", "--silent", "--no-package-lock", "--no-audit"], directory)
    return directory / "clients.mjs"


def _prepare(command: Sequence[str], directory: Path) -> None:
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise PrerequisiteMissing(f"{' '.join(command)}: {done.stderr[-1000:]}")


def test_javascript_client_works(broker: BrokerProcess, topic: str, node_clients: Path) -> None:
    _check(broker, topic, ["node", str(node_clients)], ("none", "gzip", "kept"))


def _check(broker: BrokerProcess, topic: str, command: list[str], names: Sequence[str]) -> None:
    """
    Every record of these *names* is read once, in order and whole, nothing of what was aborted, and
    the group's offsets are behind the last of them.
    """
    count = str(len(names) * PER_NAME)
    done = subprocess.run(
        [*command, broker.bootstrap, topic, count],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert 0 == done.returncode, done.stderr[-2000:]
    read = [_line(text) for text in done.stdout.splitlines()]

    expected = {(f"k{n}", f"{name}-{n}", name) for name in names for n in range(PER_NAME)}
    assert sorted(expected) == sorted((line.key, line.value, line.header) for line in read)
    committed = _committed(broker, topic)
    for partition in some({line.partition for line in read}):
        offsets = [line.offset for line in read if line.partition == partition]
        assert sorted(set(offsets)) == offsets
        assert committed[partition] > offsets[-1]


def _line(text: str) -> Line:
    partition, offset, key, value, header = text.split()
    return Line(int(partition), int(offset), key, value, header)


def _committed(broker: BrokerProcess, group: str) -> dict[int, int]:
    offsets = group_offsets(broker.bootstrap, group)
    return {partition: offset for (_, partition), offset in offsets.items()}
