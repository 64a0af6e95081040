"""
``barnabas verify`` on directories that Apache Kafka has written: it finds what somebody has damaged
and nothing else, whatever Kafka has left there.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.server.cluster.offline_topics import read_topics
from barnabas.storage.verify.context import DirectoryState
from barnabas.storage.verify.repair import repair
from barnabas.storage.verify.report import Violation
from tests.golden.test_logs import STOPPED
from tests.support.clock import StillClock
from tests.support.kafka_directory import AFTERWARDS_MS, FILES, KafkaDirectory
from tests.support.some import some
from tests.support.verifying import verified

KILLED = {
    "__cluster_metadata-0": set(),
    "__transaction_state-0": set(),
    "bad-epochs-0": {("error", "epochs-missing", "leader-epoch-checkpoint")},
    "bad-snapshot-0": {("warning", "snapshot-format", "30.snapshot")},
    "bad-txnindex-0": {("warning", "txn-index-order", "35.txnindex")},
    "deleted-left-0": {("warning", "leftover", "")},
    "empty-log-0": set(),
    "flip-last-0": {("warning", "batch-crc", "30.log")},
    "flip-middle-0": {("warning", "batch-crc", "18.log")},
    "flip-old-0": {("error", "batch-crc", "0.log")},
    "garbage-index-0": {
        ("error", "offset-index-entry", "6.index"),
        ("error", "offset-index-order", "6.index"),
        ("warning", "offset-index-entry", "30.index"),
        ("warning", "offset-index-order", "30.index"),
    },
    "intact-0": set(),
    "no-epochs-0": {("error", "epochs-missing", "leader-epoch-checkpoint")},
    "no-index-0": {("warning", "index-missing", "6.index")},
    "no-metadata-0": {("error", "partition-metadata", "partition.metadata")},
    "no-segments-0": {
        ("error", "segment-missing", ""),
        ("error", "recovery-point", ""),
        ("error", "high-watermark", ""),
        ("warning", "epochs-end", "leader-epoch-checkpoint"),
    },
    "no-snapshot-0": set(),
    "no-timeindex-0": {("warning", "index-missing", "6.timeindex")},
    "odd-index-0": {("error", "index-size", "6.index")},
    "open-txn-0": set(),
    "start-beyond-end-0": {("error", "log-start-offset", "")},
    "stray-files-0": {
        ("warning", "orphan-index", "99.index"),
        ("warning", "orphan-index", "99.timeindex"),
        ("warning", "snapshot-stray", "3.snapshot"),
        ("warning", "leftover", ""),
        ("warning", "unknown-file", "notes.txt"),
    },
    "swap-and-cleaned-0": {("warning", "leftover", "")},
    "swap-complete-0": {("warning", "leftover", "")},
    "tail-garbage-0": {("warning", "batch-incomplete", "30.log")},
    "tail-partial-0": {("warning", "batch-incomplete", "30.log")},
    "tail-zeros-0": {("warning", "zero-tail", "30.log")},
}
"""
What was done to each log after the broker was killed. Removing all snapshots does no harm: the
records tell what was in them.
"""

CLEAN = KILLED | {
    # Nothing is recovered after a clean stop, so that all of this stays.
    "bad-snapshot-0": {("warning", "snapshot-format", "32.snapshot")},
    "bad-txnindex-0": {("error", "txn-index-order", "35.txnindex")},
    "deleted-left-0": set(),
    "flip-last-0": {("error", "batch-crc", "30.log")},
    "flip-middle-0": {("error", "batch-crc", "18.log")},
    "garbage-index-0": {
        ("error", rule, f"{base}.index")
        for rule in ("offset-index-entry", "offset-index-order")
        for base in (6, 30)
    },
    "tail-garbage-0": {("error", "batch-incomplete", "30.log")},
    "tail-partial-0": {("error", "batch-incomplete", "30.log")},
    "tail-zeros-0": {("error", "zero-tail", "30.log")},
}
"""
The same damage after a clean stop.
"""


def in_short(violations: list[Violation], root: Path) -> dict[str, set[tuple[str, str, str]]]:
    """
    Severity, rule and file of each violation, by log; without the zeros in front of the names.
    """
    found: dict[str, set[tuple[str, str, str]]] = {}
    for violation in violations:
        log, *rest = violation.path.relative_to(root).parts
        name = "".join(rest).lstrip("0")
        name = f"0{name}" if name.startswith(".") else name
        found.setdefault(log, set()).add((violation.severity.value, violation.rule, name))
    return found


@pytest.mark.parametrize("name", STOPPED)
def test_verify_accepts_what_kafka_has_written_and_closed(golden: Path, name: str) -> None:
    """
    Compaction, open transactions, preallocation, odd timestamps and restarts; the metadata knows
    every log.
    """
    violations, verification = verified([golden / name / "data"], read_topics)

    assert [] == violations
    assert [DirectoryState.CLEAN] == list(verification.states.values())


@pytest.mark.parametrize("name", STOPPED)
def test_verify_accepts_a_single_log_of_kafka(golden: Path, tmp_path: Path, name: str) -> None:
    """
    Less is known about a log copied out of its directory, so less is checked.
    """
    for log in some(sorted((golden / name / "data").iterdir())):
        if log.is_dir():
            (tmp_path / log.name).symlink_to(log)
            violations, _ = verified([tmp_path / log.name])
            assert [] == [each for each in violations if each.rule != "leftover"], log


@pytest.mark.parametrize(("name", "expected"), [("killed", KILLED), ("clean", CLEAN)])
def test_verify_finds_exactly_the_damage_that_was_done(
    golden: Path, tmp_path: Path, name: str, expected: dict[str, set[tuple[str, str, str]]]
) -> None:
    root = KafkaDirectory(golden / f"recovery-{name}", "before", tmp_path).path

    violations, _ = verified([root], read_topics)

    assert {log: found for log, found in expected.items() if found} == in_short(violations, root)


def test_verify_reports_only_pending_deletions_after_a_kill(golden: Path, tmp_path: Path) -> None:
    """
    Indexes are untrimmed, final snapshots are missing, and DeleteRecords has moved start offsets.
    """
    root = KafkaDirectory(golden / "retention-killed", "data", tmp_path).path

    violations, verification = verified([root], read_topics)

    assert {"leftover"} == {violation.rule for violation in violations}
    assert {root} | {path for path in root.iterdir() if any(path.glob("*.deleted"))} == {
        violation.path for violation in violations
    }
    assert [DirectoryState.CRASHED] == list(verification.states.values())


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("killed", {}),
        # The clean stop has moved the recovery point behind it.
        ("clean", {"flip-middle-0": {("error", "batch-crc", "18.log")}}),
    ],
)
def test_repair_fixes_what_recovery_fixes(
    golden: Path, tmp_path: Path, name: str, more: dict[str, set[tuple[str, str, str]]]
) -> None:
    root = KafkaDirectory(golden / f"recovery-{name}", "before", tmp_path).path
    told: list[str] = []

    repair(
        [root],
        files=FILES,
        clock=StillClock(AFTERWARDS_MS),
        read_topics=read_topics,
        tell=told.append,
    )

    left = in_short(verified([root], read_topics)[0], root)
    assert {
        "flip-old-0": {("error", "batch-crc", "0.log")},
        "garbage-index-0": {
            ("error", "offset-index-entry", "6.index"),
            ("error", "offset-index-order", "6.index"),
        },
        "no-metadata-0": {("error", "partition-metadata", "partition.metadata")},
        "no-timeindex-0": {("warning", "time-index-last", "6.timeindex")},
        "odd-index-0": {("error", "index-size", "6.index")},
        "stray-files-0": {("warning", "unknown-file", "notes.txt"), ("warning", "leftover", "")},
        "swap-complete-0": {
            ("error", "segment-missing", "6.log"),
            ("error", "time-index-entry", "0.timeindex"),
        },
        **more,
    } == left
    last = root / "tail-garbage-0" / f"{30:020d}.log"
    assert f"cut {last} from 307 to 300 bytes" in told
    assert f"removed {root / 'stray-files-0' / f'{99:020d}.index'}, 8 bytes" in told
