"""
Log managers on a disk of the test's choice.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

from barnabas.protocol.structs import replace
from barnabas.storage.clock import Clock
from barnabas.storage.config.log_config import LogConfig
from barnabas.storage.fs.interface import Files
from barnabas.storage.fs.log_dir_failure import LogDirFailureChannel
from barnabas.storage.log.log import Log
from barnabas.storage.manager.manager import LogManager, LogManagerSettings
from barnabas.storage.topic_partition import TopicPartition
from tests.support.clock import StillClock
from tests.support.segments import padded_batch

TOPIC_ID = UUID("01234567-89ab-cdef-0123-456789abcdef")
T0 = TopicPartition("t", 0)
T1 = TopicPartition("t", 1)

SETTINGS = LogManagerSettings(
    retention_check_ms=300_000,
    flush_check_ms=2**63 - 1,
    recovery_point_checkpoint_ms=60_000,
    log_start_offset_checkpoint_ms=60_000,
    high_watermark_checkpoint_ms=5_000,
    producer_id_expiration_ms=86_400_000,
    producer_id_expiration_check_ms=600_000,
    initial_task_delay_ms=30_000,
    recovery_threads_per_directory=2,
)


def open_manager(
    files: Files,
    directories: Sequence[Path] = (Path("/data"),),
    *,
    clock: Clock | None = None,
    failures: LogDirFailureChannel | None = None,
    config: LogConfig | None = None,
    **settings: Any,
) -> LogManager:
    """
    A manager that has loaded nothing yet, with ``SETTINGS`` but for *settings*.
    """
    return LogManager(
        directories,
        files=files,
        clock=clock or StillClock(),
        failures=failures or LogDirFailureChannel(),
        default_config=config or LogConfig(),
        settings=replace(SETTINGS, **settings),
    )


def load(manager: LogManager) -> LogManager:
    """
    Load what is there, of which nothing is stray.
    """
    manager.load({}, lambda topic_id, partition: topic_id is None)
    return manager


def fill(log: Log, count: int) -> None:
    """
    Append that many batches of one record, and acknowledge them.
    """
    for _ in range(count):
        log.append_as_leader(memoryview(bytearray(padded_batch(0))), 0)
    log.update_high_watermark(log.log_end_offset)
