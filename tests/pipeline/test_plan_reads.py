from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from barnabas.pipeline.decoding.decode import OffsetRange
from barnabas.pipeline.logs import indexes
from barnabas.pipeline.logs.filesystems import Location, local_path
from barnabas.pipeline.reading import stream_plan
from barnabas.pipeline.reading.plan import Work, open_logs
from barnabas.pipeline.rows import parse_options, plan, scan
from barnabas.protocol.records.record import SimpleRecord
from barnabas.storage.fs.disk import DiskFiles
from barnabas.storage.topic_partition import TopicPartition
from tests.support.log_directory import WrittenDirectory, append
from tests.support.segments import FIRST_TIMESTAMP

SEGMENTS = 6
BATCHES = 40
"""Of each segment; each has one record."""
RECORD_BYTES = 50_000
"""So a segment is larger than what is scanned without a look at its index."""


class CountingFiles(DiskFiles):
    def __init__(self) -> None:
        super().__init__()
        self.read = Counter[str]()

    def read_bytes(self, path: Path) -> bytes:
        self.read[path.name] += 1
        return super().read_bytes(path)

    @property
    def indexes(self) -> dict[int, int]:
        return {
            int(name.removesuffix(".index")) // BATCHES: count
            for name, count in sorted(self.read.items())
            if name.endswith(".index")
        }


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> CountingFiles:
    files = CountingFiles()
    monkeypatch.setattr(
        "barnabas.pipeline.logs.directory.locate", lambda url, _: Location(files, local_path(url))
    )
    return files


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = WrittenDirectory(tmp_path_factory.mktemp("logs"))
    fill(directory, SEGMENTS)
    return directory.path


def fill(directory: WrittenDirectory, segments: int) -> None:
    log = directory.log(index_interval_bytes=4096)
    for number in range(segments * BATCHES):
        if number and number % BATCHES == 0:
            log.roll()
        append(log, [SimpleRecord(FIRST_TIMESTAMP + number, b"", bytes(RECORD_BYTES))])
    directory.stop()


def planned(logs: Path, options: Mapping[str, Any]) -> list[Work]:
    return plan(parse_options({"path": str(logs), **options}))


LAST = SEGMENTS - 1


CUT: Final = {"maxPartitionBytes": "300k"}
FROM_90: Final = {"startingOffsets": '{"events": {"0": 90}}'}
TO_150: Final = {"endingOffsets": '{"events": {"0": 150}}'}
FINELY_CUT_BATCHES: Final = {"level": "batches", "maxPartitionBytes": "100k"}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        # Whole segments. The end of the log is behind the last entry of the last index.
        ({}, {LAST: 1}),
        ({"startingOffsets": '{"events": {"0": 80}}'}, {LAST: 1}),
        # Cut, and begun in the middle.
        (CUT, dict.fromkeys(range(SEGMENTS), 1)),
        (CUT | FROM_90, dict.fromkeys(range(2, SEGMENTS), 1)),
        (CUT | FROM_90 | TO_150, {2: 1, 3: 1, LAST: 1}),
        # Made smaller, as there are too few tasks.
        ({"minPartitions": "20"}, dict.fromkeys(range(SEGMENTS), 1)),
        # The share of headers, the first position and the cuts.
        (FINELY_CUT_BATCHES | FROM_90, dict.fromkeys(range(2, SEGMENTS), 1)),
        (CUT | {"isolationLevel": "read_committed"}, None),
        (CUT | {"startingTimestamp": str(FIRST_TIMESTAMP + 90)}, None),
    ],
)
def test_each_index_is_read_once(
    disk: CountingFiles, logs: Path, options: dict[str, Any], expected: dict[int, int] | None
) -> None:
    assert planned(logs, options)

    if expected is not None:
        assert expected == disk.indexes
    assert {1} == set(disk.indexes.values())


def test_next_plan_sees_new_segments(disk: CountingFiles, logs: Path, tmp_path: Path) -> None:
    for count in (1, 2):
        planned(logs, {"maxPartitionBytes": "300k"})

        assert {count} == set(disk.indexes.values())


def test_stream_step_reads_no_index_twice(disk: CountingFiles, logs: Path) -> None:
    options = parse_options({"path": str(logs), "startingOffsets": "earliest"})
    start = stream_plan.Progress({TopicPartition("events", 0): 90})

    end = stream_plan.admit(options, start, target=None, max_offsets=None, max_bytes=3_000_000)

    assert {2: 1, 3: 1, LAST: 1} == disk.indexes
    assert 90 < end.offsets[TopicPartition("events", 0)] < 4 * BATCHES


def test_index_cache_is_bounded(
    disk: CountingFiles, logs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexes, "KEPT_ENTRIES", BATCHES + 1)
    (log,) = open_logs(parse_options({"path": str(logs)}))
    first, second, *_ = log.segments
    kept = log.log_directory.indexes

    for segment in (first, first, second, first):
        entries = kept.entries(segment)
        assert entries[0].tolist() == indexes.index_entries(DiskFiles(), segment)[0].tolist()

    assert {0: 2, 1: 1} == disk.indexes


def test_ten_times_the_data_makes_ten_times_the_tasks(disk: CountingFiles, tmp_path: Path) -> None:
    made = {}
    for segments in (3, 30):
        directory = WrittenDirectory(tmp_path / str(segments))
        fill(directory, segments)
        disk.read.clear()
        works = planned(directory.path, {"maxPartitionBytes": "1m"})
        made[segments] = len(works), sum(disk.indexes.values())

    (few, few_reads), (many, many_reads) = made[3], made[30]
    assert (10 * few, 10 * few_reads) == (many, many_reads)
    assert OffsetRange(0, 30 * BATCHES).end == sum(
        batch.num_rows for batch in scan(str(tmp_path / "30"), columns=["offset"])
    )
