"""
Damaged logs that Apache Kafka has opened and closed: the same files must come out of ours.
"""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from barnabas.storage.errors import CorruptRecord
from barnabas.storage.producers.snapshots import decode_snapshot
from barnabas.storage.state_files.file_names import DELETED_SUFFIX, SET_ASIDE_SUFFIX
from tests.golden.test_logs import list_offset
from tests.support.kafka_directory import KafkaDirectory

EPOCH_AFTERWARDS = 4

LOGS = [
    "bad-epochs-0",
    "bad-snapshot-0",
    "bad-txnindex-0",
    "deleted-left-0",
    "empty-log-0",
    "flip-last-0",
    "flip-middle-0",
    "flip-old-0",
    "garbage-index-0",
    "intact-0",
    "no-epochs-0",
    "no-index-0",
    "no-segments-0",
    "no-snapshot-0",
    "no-timeindex-0",
    "odd-index-0",
    "open-txn-0",
    "start-beyond-end-0",
    "stray-files-0",
    "swap-and-cleaned-0",
    "swap-complete-0",
    "tail-garbage-0",
    "tail-partial-0",
]


def contents(directory: Path) -> dict[str, Any]:
    """
    The files of a directory; snapshots as their entries, which have no order. Kafka deletes the
    segments that Barnabas sets aside.
    """
    found: dict[str, Any] = {}
    for path in directory.iterdir():
        data = path.read_bytes()
        found[path.name.replace(SET_ASIDE_SUFFIX, DELETED_SUFFIX)] = data
        if ".snapshot" in path.name:
            found[path.name] = sorted(map(repr, decode_snapshot(data)))
    return found


@pytest.mark.parametrize(
    ("name", "log_name"),
    [
        *itertools.product(["recovery-killed", "recovery-clean"], LOGS),
        ("recovery-killed", "tail-zeros-0"),
    ],
)
def test_damaged_log_is_recovered_as_by_kafka(
    golden: Path, tmp_path: Path, name: str, log_name: str
) -> None:
    directory = KafkaDirectory(golden / name, "before", tmp_path, only=log_name)
    answers = json.loads((golden / name / "offsets.json").read_text())[log_name]

    log = directory.open(log_name, epoch=EPOCH_AFTERWARDS)
    given = {asked: list_offset(log, asked) for asked in answers}
    log.flush(force_flush_active_segment=True)
    log.close()

    assert answers == given
    assert contents(golden / name / "after" / log_name) == contents(directory.path / log_name)


def test_zeros_behind_the_last_batch_after_a_clean_shutdown_are_an_error(
    golden: Path, tmp_path: Path
) -> None:
    directory = KafkaDirectory(golden / "recovery-clean", "before", tmp_path, only="tail-zeros-0")

    with pytest.raises(CorruptRecord, match=r"Found record size 0 smaller than minimum .* \(14\)"):
        directory.open("tail-zeros-0", epoch=EPOCH_AFTERWARDS)
