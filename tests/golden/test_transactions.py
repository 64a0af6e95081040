"""
Logs with transactions that Apache Kafka has written: what is known of them after a clean stop is
what Kafka knew, and so it is after a crash, when all of it has to be found out again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from barnabas.storage.log.fetch_isolation import FetchIsolation
from barnabas.storage.log.log import Log
from tests.golden.test_logs import everything, list_offset
from tests.golden.test_recovery import contents
from tests.support.clock import StillClock
from tests.support.kafka_directory import KafkaDirectory

SETS = ["transactions-tv0", "transactions-tv1", "transactions-tv2"]
LOGS = ["txn-0", "txn-1", "idem-0", "input-0"]
WRITTEN_MS = 1_700_000_100_000
"""
When no producer was idle for long: some of the records are from then, the others from later.
"""

_PRODUCER = re.compile(
    r"ProducerState\(producerId=(\d+), producerEpoch=(\d+), lastSequence=(-?\d+),"
    r" lastTimestamp=(-?\d+), coordinatorEpoch=OptionalInt(?:\[(\d+)\]|\.empty),"
    r" currentTransactionStartOffset=OptionalLong(?:\[(\d+)\]|\.empty)\)"
)


def opened(golden: Path, name: str, log_name: str, target: Path) -> Log:
    return written(golden, name, log_name, target).open(log_name)


def written(golden: Path, name: str, log_name: str, target: Path) -> KafkaDirectory:
    directory = KafkaDirectory(golden / name, "data", target, only=log_name)
    directory.clock = StillClock(WRITTEN_MS)
    return directory


def recovered(
    golden: Path, name: str, log_name: str, target: Path, damage: Callable[[Path], None]
) -> Log:
    """
    The log as after a crash before anything was noted: it is recovered from its first offset on.
    """
    directory = written(golden, name, log_name, target)
    directory.is_clean = False
    directory._recovery_points.clear()
    directory._high_watermarks.clear()
    damage(directory.path / log_name)
    return directory.open(log_name)


def aborted(log: Log) -> list[Any]:
    """
    What a reader of committed records is told from each offset on.
    """
    return [
        log.read(offset, 400, FetchIsolation.TXN_COMMITTED, True).aborted_transactions
        for offset in range(log.last_stable_offset + 1)
    ]


def as_it_is(_: Path) -> None:
    """
    Only the mark of a clean stop is missing.
    """


def without_what_can_be_rebuilt(path: Path) -> None:
    for file in path.iterdir():
        if file.suffix in (".txnindex", ".snapshot", ".index", ".timeindex"):
            file.unlink()


def with_garbage(path: Path) -> None:
    """
    What a crash may leave of files that were not synced: anything.
    """
    for file in path.iterdir():
        if file.suffix == ".snapshot":
            file.write_bytes(file.read_bytes()[:-1] + b"?")
        elif file.suffix == ".txnindex":
            file.write_bytes(bytes(reversed(file.read_bytes())) + b"?")


DAMAGES = [as_it_is, without_what_can_be_rebuilt, with_garbage]


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("log_name", LOGS[:3])
def test_producers_equal_those_described_by_kafka(
    golden: Path, tmp_path: Path, name: str, log_name: str
) -> None:
    answers: dict[str, str] = json.loads((golden / name / "producers.json").read_text())
    expected = {
        tuple(-1 if number is None else int(number) for number in found.groups())
        for found in _PRODUCER.finditer(answers[log_name])
    }
    assert len(expected) >= 3

    log = opened(golden, name, log_name, tmp_path)

    assert expected == set(log.active_producers())


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("log_name", LOGS)
@pytest.mark.parametrize("damage", DAMAGES)
def test_recovery_restores_kafkas_transaction_indexes_and_snapshots(
    golden: Path, tmp_path: Path, name: str, log_name: str, damage: Callable[[Path], None]
) -> None:
    log = recovered(golden, name, log_name, tmp_path, damage)
    log.close()

    assert contents(golden / name / "data" / log_name) == contents(tmp_path / "data" / log_name)


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("log_name", LOGS)
@pytest.mark.parametrize("damage", DAMAGES)
def test_recovery_restores_producers_last_stable_offset_and_aborted_transactions(
    golden: Path, tmp_path: Path, name: str, log_name: str, damage: Callable[[Path], None]
) -> None:
    answers = json.loads((golden / name / "offsets.json").read_text())[log_name]
    before = opened(golden, name, log_name, tmp_path / "clean")

    after = recovered(golden, name, log_name, tmp_path / "crashed", damage)

    assert answers == {asked: list_offset(after, asked) for asked in answers}
    assert sorted(before.active_producers()) == sorted(after.active_producers())
    assert before.last_stable_offset == after.last_stable_offset
    assert aborted(before) == aborted(after)
    assert list(map(repr, everything(before))) == list(map(repr, everything(after)))
