from __future__ import annotations

import json
from pathlib import Path

import pytest

from barnabas.pipeline.options import IsolationLevel
from barnabas.pipeline.reading.plan import open_logs
from barnabas.pipeline.rows import parse_options
from tests.golden.test_logs import STOPPED
from tests.support.log_directory import stored_rows
from tests.support.scanned import scanned_rows
from tests.support.some import some


@pytest.mark.parametrize("name", sorted({*STOPPED} - {"metadata"}))
def test_archived_rows_equal_the_records_that_kafka_stored(golden: Path, name: str) -> None:
    """
    Of every codec, compacted, with headers, from internal topics, and for any split into tasks.
    """
    path = golden / name / "data"
    cut = {"maxPartitionBytes": "500", "openCostInBytes": "0"}

    rows = scanned_rows(path, subscribePattern=".*")

    assert rows
    assert sorted(stored_rows(path), key=place) == sorted(rows, key=place)
    assert rows == scanned_rows(path, subscribePattern=".*", **cut)


def test_committed_rows_equal_those_that_kafka_returns_to_a_consumer(golden: Path) -> None:
    path = golden / "transactions-tv2" / "data"
    told = json.loads((path.parent / "fetch.json").read_text())
    options = parse_options({"path": str(path)})
    logs = {str(log.topic_partition): log for log in open_logs(options)}
    aborted_rows = 0
    for name in some(told):
        log = logs[name]
        answers = [dict(zip(told[name]["columns"], row, strict=True)) for row in told[name]["rows"]]
        stable = max(answer["lastStableOffset"] for answer in answers)
        aborted = {tuple(txn) for answer in answers for txn in answer["aborted"] or ()}
        assigned = {"assign": json.dumps({log.topic_partition[0]: [log.topic_partition[1]]})}

        committed = scanned_rows(path, isolationLevel="read_committed", **assigned)
        everything = scanned_rows(path, **assigned)

        offsets = {row[4] for row in committed}
        assert stable == log.end_offset(options.read_up_to, IsolationLevel.READ_COMMITTED)
        assert all(offset < stable for offset in offsets)
        assert aborted <= {(txn.producer_id, txn.first_offset) for txn in log.aborted()}
        assert offsets.isdisjoint(first for _, first in aborted)
        aborted_rows += len([row for row in everything if row[4] < stable]) - len(committed)
    assert aborted_rows > 20


def place(row: tuple[object, ...]) -> tuple[str, int, int]:
    topic, partition, offset = row[2:5]
    assert isinstance(topic, str)
    assert isinstance(partition, int)
    assert isinstance(offset, int)
    return topic, partition, offset
