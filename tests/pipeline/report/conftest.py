"""
Logs with known facts for reports.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest
from pyspark.sql import SparkSession

from barnabas.pipeline.jobs.common import partitions_of
from barnabas.pipeline.jobs.report.facts import Report
from barnabas.pipeline.jobs.report.making import Scope, make_report
from barnabas.protocol.compression import CompressionType
from barnabas.protocol.records.batch import build_batch
from barnabas.protocol.records.record import SimpleRecord
from barnabas.storage.config.log_config import LogConfig
from barnabas.storage.explain.logs import ReadOnlyLogs
from barnabas.storage.fs.disk import DiskFiles
from barnabas.storage.log.log import Log
from tests.support.clock import StillClock
from tests.support.explaining import StatedCluster
from tests.support.log_directory import WrittenDirectory, append
from tests.support.logs import append_with_offsets
from tests.support.segments import FIRST_TIMESTAMP

HOUR: Final = 3_600_000
NOW: Final = FIRST_TIMESTAMP + 8 * HOUR
RETENTION_MS: Final = 4 * HOUR
CHECK_MS: Final = 300_000


def at(hours: float, key: bytes | None = None) -> SimpleRecord:
    return SimpleRecord(FIRST_TIMESTAMP + int(hours * HOUR), key, b"value")


def replicate(log: Log, records: list[SimpleRecord], offset: int, **options: Any) -> None:
    """
    Append as a follower does, which checks neither offsets nor sequences.
    """
    append_with_offsets(log, memoryview(build_batch(records, base_offset=offset, **options)))


@pytest.fixture(scope="session")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """
    Logs with known facts: segments that wait for an older one or lie in the future, repeated and
    missing sequences, and keys of different frequency.
    """
    directory = WrittenDirectory(tmp_path_factory.mktemp("logs"))
    directory.clock = StillClock(NOW + 12 * HOUR)
    _write_times(directory.log("times"), directory.log("times", 1))
    _write_producers(directory.log("producers"))
    _write_keys(directory.log("keys"))
    directory.log("empty")
    directory.stop()
    return directory.path


def _write_times(waits: Log, future: Log) -> None:
    append(waits, [at(0), at(5)])
    waits.roll()
    append(waits, [at(1), at(1.5), at(1.25)])
    append(waits, [at(2)])
    waits.roll()
    append(waits, [at(7.5)])
    append(future, [at(20)])
    future.roll()
    append(future, [at(3)])


def _write_producers(log: Log) -> None:
    def batch(offset: int, sequence: int, **more: Any) -> None:
        records = [at(1)] * 3
        replicate(log, records, offset, producer_id=7, base_sequence=sequence, **more)

    batch(0, 0, producer_epoch=0)
    batch(3, 3, producer_epoch=0)
    batch(6, 3, producer_epoch=0)
    batch(9, 10, producer_epoch=0)
    batch(12, 0, producer_epoch=1)
    batch(15, 0, producer_epoch=1)
    batch(20, 3, producer_epoch=1)
    replicate(log, [at(2)] * 4, 30, compression=CompressionType.ZSTD)
    replicate(log, [at(2)] * 2, 34, producer_id=9, producer_epoch=0, base_sequence=0)


def _write_keys(log: Log) -> None:
    keys = [b"often"] * 6 + [None] * 3 + [b""] * 2 + [b"\xff\x00"]
    append(log, [at(1, key) for key in keys], compression=CompressionType.GZIP)
    append(log, [at(1, b"often")])


def cluster(path: Path) -> StatedCluster:
    stated = StatedCluster(LogConfig(retention_ms=RETENTION_MS), check_interval_ms=CHECK_MS)
    stated.data_dirs = (path,)
    return stated


@pytest.fixture(scope="session")
def report(spark: SparkSession, logs: Path) -> Report:
    known, files, clock = cluster(logs), DiskFiles(), StillClock(NOW)
    partitions = partitions_of(ReadOnlyLogs(known, files, clock), [])
    scope = Scope(partitions, with_keys=True, now_ms=NOW)
    return make_report(spark, known, scope, files=files, clock=clock)
