"""
Records whose times Spark and Arrow cannot hold, such as those of producers that count in ns.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from barnabas.pipeline.errors import FarTimestamp
from barnabas.pipeline.jobs.archive.files import batches_in_order
from barnabas.pipeline.rows import scan
from barnabas.pipeline.schemas import FAR_TIMESTAMP, RECORDS
from barnabas.protocol.records.record import SimpleRecord
from tests.pipeline.archive.archived import EVENTS
from tests.pipeline.archive.kinds import Kind
from tests.support.log_directory import WrittenDirectory, append
from tests.support.scanned import plain_rows, scanned_offsets, scanned_rows
from tests.support.segments import FIRST_TIMESTAMP

LATEST_MS: Final = (2**63 - 1) // 1000
YEAR_9999_MS: Final = 253_402_300_799_999
TIMES: Final = [
    *(FIRST_TIMESTAMP, YEAR_9999_MS, LATEST_MS + 1),
    *(1_700_000_000_000_000_000, FIRST_TIMESTAMP, 2**63 - 1),
]
FAR: Final = [ms if ms > LATEST_MS else None for ms in TIMES]


def written(path: Path, times: Sequence[int]) -> Path:
    directory = WrittenDirectory(path)
    log = directory.log(message_timestamp_after_max_ms=2**63 - 1)
    for ms in times:
        append(log, [SimpleRecord(ms, None, b"value")])
    log.roll()
    append(log, [SimpleRecord(FIRST_TIMESTAMP, None, b"value")])
    directory.stop()
    return path


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    return written(tmp_path / "logs", TIMES)


def test_time_that_spark_cannot_hold_is_an_error_that_names_its_record(logs: Path) -> None:
    sentence = f"Offset 2 of events-0 has the timestamp {LATEST_MS + 1} ms"
    with pytest.raises(FarTimestamp, match=sentence):
        scanned_rows(logs)
    for offset in (2, 3, 5):
        bounds = {
            "startingOffsets": f'{{"events": {{"0": {offset}}}}}',
            "endingOffsets": f'{{"events": {{"0": {offset + 1}}}}}',
        }
        with pytest.raises(FarTimestamp, match=f"Offset {offset} .* {TIMES[offset]} ms"):
            scanned_rows(logs, **bounds)
    assert [*range(7)] == scanned_offsets(logs)


def test_latest_time_that_spark_can_hold_is_a_row(tmp_path: Path) -> None:
    rows = scanned_rows(written(tmp_path / "logs", [LATEST_MS]))

    assert [LATEST_MS, FIRST_TIMESTAMP] == [row[5] for row in rows]


def test_time_is_null_where_its_ms_are_read(logs: Path) -> None:
    rows = plain_rows(scan(str(logs), columns=["timestamp", FAR_TIMESTAMP]))

    near = [None if ms > LATEST_MS else ms for ms in TIMES]
    assert [*zip(near, FAR, strict=True)] == rows[:-1]


def test_far_times_are_found_by_timestamp(logs: Path) -> None:
    assert [5, 6] == scanned_offsets(logs, startingTimestamp=str(TIMES[3] + 1))


@pytest.mark.parametrize(
    ("format", "package"),
    [("parquet", "obstore"), ("delta", "deltalake"), ("iceberg", "pyiceberg")],
)
def test_archive_keeps_the_original_times(
    logs: Path, tmp_path: Path, format: str, package: str
) -> None:
    pytest.importorskip(package)
    kind = Kind(format, tmp_path / "archive")

    kind.run(logs)

    assert [] == kind.run(logs).commits
    table = kind.open()
    columns = ["offset", "timestamp", FAR_TIMESTAMP]
    rows = plain_rows(batches_in_order(table.store, table.files_of(EVENTS), columns, 100))
    near = [None if ms > LATEST_MS else ms for ms in TIMES]
    assert [*zip(range(6), near, FAR, strict=True)] == rows
    assert len(RECORDS.names) == len(kind.rows()[0])
