"""
What Apache Kafka's own dump tool has printed of the files that Apache Kafka has written.
"""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from barnabas.storage.dump.command import main
from barnabas.storage.dump.findings import KINDS
from tests.support.fingerprint import fingerprint
from tests.support.kafka_directory import KafkaDirectory


@dataclass(frozen=True)
class Run:
    """
    One run of Kafka's tool: where, with what, and what came of it.
    """

    directory: Path
    arguments: list[str]
    status: int
    out: bytes
    err: str


def runs_in(directory: Path, commands: Path) -> Iterator[tuple[str, Run]]:
    for name, command in json.loads((commands / "commands.json").read_text()).items():
        arguments = command["args"] if isinstance(command, dict) else command
        err = commands / f"{name}.err"
        err_text = err.read_text() if err.exists() else ""
        failed = int("Exception in thread" in err_text)
        status = command["exit"] if isinstance(command, dict) else failed
        out = (commands / name).read_bytes()
        yield name, Run(directory, arguments, status, out, err_text)


def dump(run: Run, monkeypatch: pytest.MonkeyPatch) -> tuple[int, bytes, str]:
    """
    What ours does where Kafka's was run; absolute paths are made relative.
    """
    out, err = io.BytesIO(), io.BytesIO()
    monkeypatch.chdir(run.directory)
    status = main(run.arguments, out, err)
    return status, out.getvalue(), err.getvalue().decode().replace(f"{os.getcwd()}/", "")


def remarks(text: str) -> list[str]:
    """
    What was said of each file, sorted: Kafka's order depends on the hash of absolute paths.
    """
    titles = tuple(kind.title for kind in KINDS.values())
    said: list[str] = []
    for line in text.splitlines():
        if said and not line.startswith(titles) and said[-1].startswith(titles):
            said[-1] += f"\n{line}"
        else:
            said.append(line)
    return sorted(said)


@pytest.fixture
def place(golden: Path, tmp_path: Path, request: pytest.FixtureRequest) -> tuple[Path, Path]:
    """
    The directory in which Kafka's tool was run, and the one with what it printed.
    """
    name, commands, archive = request.param
    if archive:
        KafkaDirectory(golden / name, archive, tmp_path)
    return tmp_path if archive else golden / name, golden / name / commands


@pytest.mark.parametrize(
    "place",
    [
        ("codecs", "dump", ""),
        ("compaction", "dump", ""),
        ("groups", "dump", ""),
        ("groups-compacted", "dump", ""),
        ("metadata", "dump", ""),
        ("recovery-clean", "dump-after", ""),
        ("recovery-clean", "dump-before", "before"),
        ("recovery-killed", "dump-after", ""),
        ("recovery-killed", "dump-before", "before"),
        ("retention-killed", "dump", "data"),
        ("segments", "dump", ""),
        ("transactions-tv0", "dump", ""),
        ("transactions-tv1", "dump", ""),
        ("transactions-tv2", "dump", ""),
    ],
    ids="/".join,
    indirect=True,
)
def test_dump_of_every_file_equals_that_of_kafkas_tool(
    place: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    directory, commands = place
    before = fingerprint(directory)
    differing = {}

    for name, run in runs_in(directory, commands):
        status, out, err = dump(run, monkeypatch)
        if (status, out, remarks(err)) != (run.status, run.out, remarks(run.err)):
            differing[name] = status, out, err

    assert {} == differing
    assert before == fingerprint(directory)


def test_dump_options_and_errors_equal_those_of_kafkas_tool(
    golden: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Including exit statuses and standard error; the help has one option more.
    """
    differing = {}

    for name, run in runs_in(golden, golden / "dump-flags"):
        status, out, err = dump(run, monkeypatch)
        err = re.sub(r"--format .*\n(?: .*\n)*", "", err)
        if (status, out, err) != (run.status, run.out, run.err):
            differing[name] = status, out, err

    assert {} == differing
