"""
Committed records of logs without some of their files, as in a copy of ``*.log`` and ``*.index``.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from barnabas.pipeline.errors import MissingTransactionIndex
from barnabas.protocol.records.record import SimpleRecord
from barnabas.storage.fs.disk import DiskFiles
from barnabas.storage.log.log import Log
from tests.support.clock import StillClock
from tests.support.log_directory import WrittenDirectory, append
from tests.support.logs import config_with, end_transaction, new_log
from tests.support.scanned import scanned_offsets
from tests.support.segments import FIRST_TIMESTAMP


def written(path: Path, seed: int) -> tuple[set[int], set[int]]:
    """
    Write transactions of several producers across segments; return the offsets of the committed
    records and of the aborted ones.
    """
    chance = random.Random(seed)
    directory = WrittenDirectory(path)
    log = directory.log(segment_bytes=1500)
    sequences = [0] * 4
    waiting: dict[int, list[int]] = {}
    committed: set[int] = set()
    aborted: set[int] = set()
    record = [SimpleRecord(FIRST_TIMESTAMP, None, b"value")]
    for _ in range(200):
        producer, what = chance.randrange(4), chance.random()
        if producer in waiting and what < 0.3:
            is_committed = chance.random() < 0.6
            end_transaction(log, producer, commit=is_committed)
            (committed if is_committed else aborted).update(waiting.pop(producer))
        elif what < 0.5:
            committed.add(log.log_end_offset)
            append(log, record)
        else:
            waiting.setdefault(producer, []).append(log.log_end_offset)
            stamp = {"producer_id": producer, "producer_epoch": 0, "is_transactional": True}
            append(log, record, base_sequence=sequences[producer], **stamp)
            sequences[producer] += 1
    for producer, offsets in waiting.items():
        end_transaction(log, producer, commit=False)
        aborted.update(offsets)
    directory.stop()
    return committed, aborted


@pytest.mark.parametrize("seed", range(40))
def test_aborted_records_are_never_rows_whatever_files_are_missing(
    tmp_path: Path, seed: int
) -> None:
    """
    The first segments may be deleted, all or some indexes missing, and a part of the log be read.
    """
    chance = random.Random(seed)
    committed, aborted = written(tmp_path, seed)
    logs = sorted((tmp_path / "events-0").glob("*.log"))
    for log in logs[: chance.choice((0, 0, 3))]:
        for file in log.parent.glob(f"{log.stem}.*"):
            file.unlink()
    first = int(next(iter(sorted((tmp_path / "events-0").glob("*.log")))).stem)
    share = chance.choice((0, 0.3, 1))
    missing = False
    for file in (tmp_path / "events-0").glob("*.txnindex"):
        if chance.random() < share:
            file.unlink()
            missing = True
    if chance.random() < 0.5:
        for pattern in ("*.snapshot", "*.timeindex"):
            for file in (tmp_path / "events-0").glob(pattern):
                file.unlink()
    end = max(committed | aborted)
    bounds = sorted(chance.sample(range(first, end + 1), 2))
    options = {
        "startingOffsets": f'{{"events": {{"0": {bounds[0]}}}}}',
        "endingOffsets": f'{{"events": {{"0": {bounds[1]}}}}}',
        "maxPartitionBytes": str(chance.choice((1, 1000, 1 << 20))),
        "chunkBytes": str(chance.choice((4096, 1 << 20))),
        "isolationLevel": "read_committed",
    }

    try:
        offsets = scanned_offsets(tmp_path, **options)
    except MissingTransactionIndex:
        assert missing
        assert aborted & {*range(*bounds)}
    else:
        assert sorted(committed & {*range(*bounds)}) == offsets


def test_index_is_rebuilt_by_a_broker_as_the_error_says(tmp_path: Path) -> None:
    committed, _ = written(tmp_path, 1)
    for pattern in ("*.txnindex", "*.timeindex", "*.snapshot"):
        for file in (tmp_path / "events-0").glob(pattern):
            file.unlink()
    with pytest.raises(MissingTransactionIndex, match=r"delete the \.index files .* a broker") as e:
        scanned_offsets(tmp_path, isolationLevel="read_committed")
    assert ".txnindex" in str(e.value)

    for file in (tmp_path / "events-0").glob("*.index"):
        file.unlink()
    log: Log = new_log(
        tmp_path / "events-0",
        config_with(segment_bytes=1500),
        files=DiskFiles(),
        clock=StillClock(FIRST_TIMESTAMP),
    )
    log.close()

    assert sorted(committed) == scanned_offsets(tmp_path, isolationLevel="read_committed")
