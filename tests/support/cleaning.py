"""
Logs that are compacted: keyed batches, and a cleaner for one round.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from barnabas.protocol.records.batch import build_batch
from barnabas.protocol.records.record import Record, SimpleRecord
from barnabas.storage.cleaner.cleanable import LogToClean
from barnabas.storage.cleaner.cleaner import Cleaner
from barnabas.storage.cleaner.offset_map import BYTES_PER_ENTRY
from barnabas.storage.cleaner.settings import CleanerSettings
from barnabas.storage.cleaner.stats import CleanerStats
from barnabas.storage.clock import Clock
from barnabas.storage.log.append_info import LogAppendInfo
from barnabas.storage.log.log import Log
from barnabas.storage.topic_partition import TopicPartition
from tests.support.logs import read_records
from tests.support.segments import FIRST_TIMESTAMP


def no_throttle(size: int) -> None: ...


def never_aborted(partition: TopicPartition) -> None: ...


def new_cleaner(
    clock: Clock,
    *,
    slots: int = 1000,
    io_buffer_bytes: int = 64 * 1024,
    max_io_buffer_bytes: int = 1024 * 1024,
    load_factor: float = 0.75,
    throttle: Callable[[int], None] = no_throttle,
    check_done: Callable[[TopicPartition], None] = never_aborted,
    pause: Callable[[], None] = lambda: None,
) -> Cleaner:
    return Cleaner(
        CleanerSettings(
            dedupe_buffer_bytes=slots * BYTES_PER_ENTRY,
            io_buffer_bytes=2 * io_buffer_bytes,
            max_message_bytes=max_io_buffer_bytes,
            load_factor=load_factor,
        ),
        throttle=throttle,
        check_done=check_done,
        clock=clock,
        pause=pause,
    )


def clean(
    log: Log,
    clock: Clock,
    *,
    first_dirty_offset: int = 0,
    uncleanable_offset: int | None = None,
    **options: Any,
) -> tuple[int, CleanerStats]:
    """
    Clean all of the log but its active segment; *options* are those of ``new_cleaner``.
    """
    end = log.active_segment.base_offset if uncleanable_offset is None else uncleanable_offset
    to_clean = LogToClean(log=log, first_dirty_offset=first_dirty_offset, uncleanable_offset=end)
    return new_cleaner(clock, **options).clean(to_clean)


def put(
    log: Log,
    *pairs: tuple[bytes | None, bytes | None],
    timestamp: int = FIRST_TIMESTAMP,
    **options: Any,
) -> LogAppendInfo:
    """
    Append one batch of keys and values; *options* are those of ``build_batch``.
    """
    records = [SimpleRecord(timestamp + at, *pair) for at, pair in enumerate(pairs)]
    info = log.append_as_leader(memoryview(build_batch(records, **options)), 0)
    log.update_high_watermark(log.log_end_offset)
    return info


def pairs(log: Log) -> list[tuple[int, bytes | None, bytes | None]]:
    """
    Offset, key and value of all records of the log.
    """
    return [(record.offset, record.key, record.value) for record in read_records(log)]


def latest(records: list[Record]) -> dict[bytes | None, bytes | None]:
    """
    What a reader of all *records* ends up with.
    """
    return {record.key: record.value for record in records}
