"""
A log on a disk in memory, which is opened, closed and lost as a broker would.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from barnabas.protocol.records.batch import RecordBatch, batches, build_batch, read_batch
from barnabas.protocol.records.control import ControlRecordType, EndTransactionMarker
from barnabas.protocol.records.record import Record, SimpleRecord
from barnabas.storage.clock import Clock
from barnabas.storage.config.log_config import LogConfig
from barnabas.storage.fs.interface import Files
from barnabas.storage.fs.log_dir_failure import LogDirFailureChannel
from barnabas.storage.log.append_info import LogAppendInfo
from barnabas.storage.log.fetch_isolation import FetchIsolation
from barnabas.storage.log.log import Log
from barnabas.storage.log.retention import Decision, LogState, plan
from barnabas.storage.producers.append_origin import AppendOrigin
from barnabas.storage.producers.state import ProducerStateManagerConfig
from barnabas.storage.recovery.opening import open_log
from barnabas.storage.segment.segment import LogSegment
from barnabas.testing.disks.memory import MemoryFiles
from tests.support.clock import StillClock
from tests.support.segments import FIRST_TIMESTAMP, padded_batch

DIRECTORY = Path("/data/t-0")
NAME = "{:020d}{}"


def new_log(
    directory: Path = DIRECTORY,
    config: LogConfig | None = None,
    *,
    files: Files | None = None,
    clock: Clock | None = None,
    **options: Any,
) -> Log:
    """
    The one way to open a log without a log manager: in memory unless *files* says where, all of it
    acknowledged, and without verification of transactions; *options* are those of ``open_log``.
    """
    given: dict[str, Any] = {
        "failures": LogDirFailureChannel(),
        "producer_config": ProducerStateManagerConfig(transaction_verification_enabled=False),
    }
    log = open_log(
        directory,
        config or LogConfig(),
        files=files or MemoryFiles(),
        clock=clock or StillClock(FIRST_TIMESTAMP),
        **{**given, **options},
    )
    log.update_high_watermark(log.log_end_offset)
    return log


def config_with(**config: Any) -> LogConfig:
    """
    Config values are those of ``LogConfig``; segments may have any size.
    """
    if "segment_bytes" in config:
        config["internal_segment_bytes"] = config.pop("segment_bytes")
    return LogConfig(**config)


class LogHome:
    """
    The directory of one log with a config as of ``config_with``, and what a broker notes beside it.
    """

    def __init__(self, *, files: MemoryFiles | None = None, **config: Any) -> None:
        self.clock = StillClock(FIRST_TIMESTAMP)
        self.files = files or MemoryFiles(self.clock.now_ms)
        self.config = config_with(**config)
        self.failures = LogDirFailureChannel()
        self.recovery_point = self.log_start_offset = 0
        self.was_clean = True

    def open(
        self,
        directory: Path = DIRECTORY,
        *,
        transaction_verification: bool = False,
        **options: Any,
    ) -> Log:
        """
        Open the log, which may have got another *directory*; *options* are those of ``open_log``.
        """
        given: dict[str, Any] = {
            "recovery_point": self.recovery_point,
            "log_start_offset": self.log_start_offset,
            "had_clean_shutdown": self.was_clean,
            "producer_config": ProducerStateManagerConfig(
                transaction_verification_enabled=transaction_verification
            ),
        }
        log = new_log(
            directory,
            self.config,
            files=self.files,
            clock=self.clock,
            failures=self.failures,
            **{**given, **options},
        )
        self.was_clean = False
        return log

    def checkpoint(self, log: Log) -> None:
        """
        Note what a broker notes every minute.
        """
        self.recovery_point = log.recovery_point
        start = log.log_start_offset
        self.log_start_offset = start if start > log.first_segment_base_offset else 0

    def write_checkpoint(self, name: str, offset: int) -> None:
        """
        Note *offset* for the log in the file *name* of the log directory.
        """
        self.files.write_atomically(DIRECTORY.parent / name, f"0\n1\nt 0 {offset}\n".encode())

    def stop(self, log: Log) -> None:
        log.flush(force_flush_active_segment=True)
        log.close()
        self.checkpoint(log)
        self.was_clean = True

    def names(self) -> list[str]:
        return self.files.names(DIRECTORY)

    def file(self, offset: int, suffix: str) -> bytearray:
        """
        What a file holds; it can be changed.
        """
        return self.files.nodes[DIRECTORY / NAME.format(offset, suffix)].data

    def has_file(self, offset: int, suffix: str) -> bool:
        return DIRECTORY / NAME.format(offset, suffix) in self.files.nodes

    def remove(self, offset: int, suffix: str) -> None:
        del self.files.nodes[DIRECTORY / NAME.format(offset, suffix)]


def sent_batch(*, size: int = 150, timestamp: int = FIRST_TIMESTAMP) -> memoryview:
    """
    A batch of one record as a producer sends it, exactly *size* bytes long.
    """
    return memoryview(bytearray(padded_batch(0, size=size, timestamp=timestamp)))


def append(
    log: Log,
    count: int = 1,
    *,
    size: int = 150,
    timestamp: int | None = None,
    leader_epoch: int = 0,
) -> LogAppendInfo:
    """
    Append batches of one record, each of *size* bytes, and acknowledge them.

    Timestamps are those that were given, or those of ``FIRST_TIMESTAMP`` plus the offset.
    """
    info = LogAppendInfo()
    for _ in range(count):
        at = FIRST_TIMESTAMP + log.log_end_offset if timestamp is None else timestamp
        info = log.append_as_leader(sent_batch(size=size, timestamp=at), leader_epoch)
        log.update_high_watermark(log.log_end_offset)
    return info


def log_of(
    count: int = 1, *, size: int = 150, timestamp: int | None = None, **config: Any
) -> tuple[LogHome, Log]:
    """
    A new log with batches as of ``append``; *config* is that of ``LogHome``.
    """
    home = LogHome(**config)
    log = home.open()
    append(log, count, size=size, timestamp=timestamp)
    return home, log


def append_with_offsets(log: Log, records: memoryview) -> LogAppendInfo:
    """
    Append batches of one leader epoch that have their offsets, as the metadata log does. Neither
    offsets that are left out nor sequences are checked.
    """
    return log.append_as_leader(
        records,
        read_batch(records).partition_leader_epoch,
        origin=AppendOrigin.RAFT_LEADER,
        transaction_version=0,
    )


def produce(
    log: Log,
    *values: bytes,
    acknowledge: bool = True,
    timestamp: int = FIRST_TIMESTAMP,
    **more: Any,
) -> LogAppendInfo:
    """
    Append one batch with *values*; *more* is what ``build_batch`` can be told.
    """
    records = [SimpleRecord(timestamp, b"k", value) for value in values]
    info = log.append_as_leader(memoryview(build_batch(records, **more)), 0)
    if acknowledge:
        log.update_high_watermark(log.log_end_offset)
    return info


def begin_transaction(
    log: Log, producer_id: int, *, sequence: int = 0, count: int = 1
) -> LogAppendInfo:
    """
    Append *count* records of a transaction, and acknowledge them.
    """
    return produce(
        log,
        *[b"v"] * count,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=sequence,
        is_transactional=True,
    )


def end_transaction(
    log: Log,
    producer_id: int,
    epoch: int = 0,
    *,
    commit: bool = True,
    coordinator_epoch: int = 0,
    transaction_version: int = 0,
    timestamp: int = FIRST_TIMESTAMP,
) -> LogAppendInfo:
    """
    Append a marker, but do not acknowledge it.
    """
    control_type = ControlRecordType.COMMIT if commit else ControlRecordType.ABORT
    marker = EndTransactionMarker(control_type, coordinator_epoch)
    batch = marker.batch(timestamp, producer_id=producer_id, producer_epoch=epoch)
    return log.append_as_leader(
        memoryview(batch),
        0,
        origin=AppendOrigin.COORDINATOR,
        transaction_version=transaction_version,
    )


def read_batches(log: Log, isolation: FetchIsolation = FetchIsolation.LOG_END) -> list[RecordBatch]:
    """
    All batches of the log, up to a bound.
    """
    found: list[RecordBatch] = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        records = log.read(offset, 1 << 20, isolation, True).records
        read = [] if records is None else list(batches(records.read()))
        if not read:
            break
        found += read
        offset = found[-1].next_offset
    return found


def read_records(log: Log) -> list[Record]:
    """
    All records of the log.
    """
    return [record for batch in read_batches(log) for record in batch.records()]


def offsets(log: Log) -> list[int]:
    """
    The offsets of all records of the log.
    """
    return [record.offset for record in read_records(log)]


def planned_retention(log: Log, now_ms: int) -> list[Decision[LogSegment]]:
    """
    What retention would do now, rule by rule.
    """
    state = LogState(
        log.segments.values(), log.log_start_offset, log.high_watermark, log.log_end_offset
    )
    return plan(state, log.config, now_ms)


def bases(log: Log) -> list[int]:
    """
    The base offsets of the segments.
    """
    return list(log.segments.base_offsets)
