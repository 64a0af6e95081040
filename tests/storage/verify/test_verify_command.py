from __future__ import annotations

import argparse
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from barnabas.protocol.records.batch import batches
from barnabas.server.cli import main
from barnabas.storage.fs.disk import DiskFile, DiskFiles
from barnabas.storage.readonly.log_root import LogRoot
from barnabas.storage.verify.cluster import KnownTopics, ReadTopics
from barnabas.storage.verify.command import add_arguments, run
from barnabas.storage.verify.invariants import INVARIANTS
from barnabas.testing.disks.memory import MemoryFiles
from tests.support.logs import LogHome, produce
from tests.support.sound_directory import ROOT, TOPICS, sound_directory
from tests.support.verifying import no_topics

PAGE = Path(__file__).parents[3] / "docs" / "verify.md"
FINE, VIOLATIONS, USAGE = 0, 1, 2


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for path, node in sound_directory().nodes.items():
        target = tmp_path / "data" / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(node.data)
    return tmp_path / "data"


def read_topics(_root: LogRoot) -> KnownTopics:
    return TOPICS


def verify(*arguments: object, read_topics: ReadTopics = read_topics) -> int:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return run(parser.parse_args([str(each) for each in arguments]), read_topics)


def contents(root: Path) -> Mapping[Path, bytes]:
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


def flip(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(data)


def test_verify_prints_nothing_about_a_sound_log(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = contents(root)

    assert FINE == verify(root)

    said = capsys.readouterr().out.splitlines()
    assert f"{root} was stopped cleanly" == said[0]
    assert re.fullmatch(
        r"0 errors, 0 warnings in 6 logs: \d+ segments, \d+ batches, \d+ records, \d+ bytes",
        said[1],
    )
    assert before == contents(root)


def test_verify_prints_each_violation_on_one_line(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    segment = root / "plain-0" / f"{0:020d}.log"
    flip(segment, 200)
    before = contents(root)

    assert VIOLATIONS == verify(root)

    line, _, summary = capsys.readouterr().out.splitlines()
    assert re.fullmatch(
        rf"error batch-crc {segment} position 150 offset 1: found checksum \d+; expected \d+", line
    )
    assert summary.startswith("1 error, 0 warnings in 6 logs")
    assert before == contents(root)


def test_verify_prints_a_violation_as_a_json_object(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    segment = root / "plain-0" / f"{0:020d}.log"
    flip(segment, 200)

    assert VIOLATIONS == verify("--format", "json", root)

    violation, summary = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert {
        "severity": "error",
        "rule": "batch-crc",
        "file": str(segment),
        "position": 150,
        "offset": 1,
    } == {name: violation[name] for name in violation if name not in ("found", "expected")}
    assert (1, 0, 6) == (summary["errors"], summary["warnings"], summary["logs"])
    assert {str(root): "stopped cleanly"} == summary["directories"]


def test_verify_prints_how_many_more_violations_there_are(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checkpoint = root / "recovery-point-offset-checkpoint"
    checkpoint.write_text("0\n8\n" + "plain 0 1\n" * 8)

    assert VIOLATIONS == verify(root)

    assert f"checkpoint-format {checkpoint}: 2 more" in capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("path", ["missing", "data/meta.properties"])
def test_verify_refuses_a_path_that_is_not_a_directory(
    root: Path, path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert USAGE == verify(root.parent / path)
    said = capsys.readouterr()
    assert "" == said.out
    assert "is not a directory" in said.err


def test_verify_requires_a_directory(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["verify"])
    assert USAGE == exit_.value.code
    assert "DIR" in capsys.readouterr().err


def test_verify_is_listed_as_a_command(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert FINE == main(["verify", str(root), str(root / "plain-0")])
    assert "in 7 logs" in capsys.readouterr().out


# Repair.


def test_repair_leaves_a_sound_log_unchanged(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = contents(root)

    assert FINE == verify("--repair", root)

    assert "repair:" not in capsys.readouterr().out
    assert before == contents(root)


def test_repair_truncates_the_damaged_end_of_a_log_and_reports_it(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    last = max((root / "plain-0").glob("*.log"))
    whole = last.read_bytes()
    last.write_bytes(whole + b"\x07" * 40)
    (root / "empty-0" / f"{5:020d}.index").write_bytes(bytes(8))

    assert FINE == verify("--repair", root)

    said = capsys.readouterr().out.splitlines()
    assert f"repair: cut {last} from {len(whole) + 40} to {len(whole)} bytes" in said
    assert f"repair: removed {root / 'empty-0' / f'{5:020d}.index'}, 8 bytes" in said
    assert whole == last.read_bytes()
    assert FINE == verify(root)


def test_repair_does_not_mistake_compaction_for_data_loss(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    Recovery truncates a log at a gap unless it knows that the log was compacted. The topics of the
    coordinators always are.
    """
    log = (root / "compacted-0").rename(root / "__groups-0")
    segments = sorted(log.glob("*.log"))
    data = segments[0].read_bytes()
    *_, last = batches(data)
    segments[0].write_bytes(data[: last.position])
    (root / ".kafka_cleanshutdown").unlink()
    for name in ("recovery-point-offset-checkpoint", "cleaner-offset-checkpoint"):
        (root / name).write_bytes(b"")

    verify("--repair", root, read_topics=no_topics)

    assert "repair:" in capsys.readouterr().out
    assert len(segments) > 1
    assert segments == sorted(log.glob("*.log"))


def test_repair_is_refused_while_a_broker_runs(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flip(root / "plain-0" / f"{0:020d}.log", 200)
    lock = DiskFiles().lock(root / ".lock")
    assert lock is not None
    before = contents(root)

    assert USAGE == verify("--repair", root)

    assert "repair:" not in capsys.readouterr().out
    assert before == contents(root)
    lock.release()


def test_repair_refuses_a_single_log(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flip(root / "plain-0" / f"{0:020d}.log", 200)

    assert USAGE == verify("--repair", root / "plain-0")

    assert "name its log directory" in capsys.readouterr().err


# The reference page.


def documented() -> dict[str, tuple[str, str]]:
    rows = re.findall(r"^\| `([a-z-]+)` \| (\w+) \| (.*) \|$", PAGE.read_text(), re.MULTILINE)
    return {name: (severity, sentence) for name, severity, sentence in rows}


def test_documentation_lists_every_verify_rule() -> None:
    expected: dict[str, Any] = {
        rule.name: (rule.severity.value, rule.sentence) for rule in INVARIANTS.values()
    }
    assert list(expected.items()) == list(documented().items())


@pytest.mark.parametrize("rule", INVARIANTS.values(), ids=lambda rule: rule.name)
def test_verify_rule_is_described_in_one_sentence(rule: Any) -> None:
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", rule.name)
    assert rule.sentence.endswith(".")
    assert "  " not in rule.sentence


def test_verify_closes_segments_once_they_are_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = LogHome(files=cast(MemoryFiles, DiskFiles()), segment_bytes=80, segment_index_bytes=100)
    (tmp_path / "t-0").mkdir()
    log = home.open(tmp_path / "t-0")
    for number in range(100):
        produce(log, b"value %d" % number)
    home.stop(log)
    descriptors: list[int] = []
    real = DiskFiles.open

    def counted(files: DiskFiles, path: Path, **more: bool) -> DiskFile:
        descriptors.append(len(os.listdir("/proc/self/fd")))
        return real(files, path, **more)

    monkeypatch.setattr(DiskFiles, "open", counted)

    verify(tmp_path)

    assert len(descriptors) > 300
    assert max(descriptors) <= descriptors[0] + 10
