"""
Opening a log: making its parts, and recovering it if it needs that.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from uuid import UUID

from barnabas.storage.clock import Clock
from barnabas.storage.config.log_config import LogConfig
from barnabas.storage.config.options import DAYS
from barnabas.storage.fs.failure import LogDirFailureChannel
from barnabas.storage.fs.interface import Files
from barnabas.storage.log.directory import SegmentDirectory
from barnabas.storage.log.leader_epochs import LeaderEpochFileCache
from barnabas.storage.log.log import Log
from barnabas.storage.producers.state import ProducerStateManager, ProducerStateManagerConfig
from barnabas.storage.recovery.loader import LogLoader
from barnabas.storage.state_files.checkpoints import (
    LEADER_EPOCH_CHECKPOINT,
    LeaderEpochCheckpointFile,
)
from barnabas.storage.state_files.file_names import parse_topic_partition_name
from barnabas.storage.threads.deferred_work import DeferredWork


def open_log(
    directory: Path,
    config: LogConfig,
    *,
    files: Files,
    clock: Clock,
    failures: LogDirFailureChannel,
    topic_id: UUID | None = None,
    log_start_offset: int = 0,
    recovery_point: int = 0,
    high_watermark: int = 0,
    had_clean_shutdown: bool = True,
    was_compacted: bool = False,
    producer_id_expiration_ms: int = 1 * DAYS,
    transaction_verification: bool = True,
    wake_at: Callable[[int], None] = lambda due_ms: None,
) -> Log:
    """
    Open the log in *directory*, which is made if it is missing.

    Args:
        topic_id: of the topic that the log is for, if it is a new one.
        log_start_offset: as it was noted in the checkpoint of the log directory.
        recovery_point: likewise; what is below is on the disk.
        high_watermark: likewise.
        had_clean_shutdown: whether nothing needs to be recovered.
        was_compacted: whether the cleaner has been at the log, whatever *config* says now.
        producer_id_expiration_ms: how long a producer may be idle before it is forgotten.
        transaction_verification: whether transactional batches need a ``VerificationGuard``.
        wake_at: told when ``remove_deleted_files`` should be called, in ms.

    Raises:
        InvalidLogDirectory: the name of *directory* is not one of a partition.
        InconsistentTopicId: the log belongs to another topic.
        CorruptRecord: the log was stopped cleanly, but cannot be read to its end.
        KafkaStorageError: the disk failed.
    """
    partition = parse_topic_partition_name(directory)
    try:
        listed = dict.fromkeys(files.names(directory))
    except FileNotFoundError:
        files.make_directory(directory)
        listed = {}
    deferred = DeferredWork(clock, wake_at)
    place = SegmentDirectory(
        directory,
        partition,
        config,
        files=files,
        clock=clock,
        deferred=deferred,
        listed=listed,
    )
    checkpoint = LeaderEpochCheckpointFile(
        files, directory, exists=LEADER_EPOCH_CHECKPOINT in listed
    )
    epochs = LeaderEpochFileCache(partition, checkpoint, deferred.soon)
    settings = ProducerStateManagerConfig(
        producer_id_expiration_ms=producer_id_expiration_ms,
        transaction_verification_enabled=transaction_verification,
    )
    producers = ProducerStateManager(
        partition, directory, settings, clock, files=files, listed=listed
    )
    loader = LogLoader(
        place,
        epochs,
        producers,
        had_clean_shutdown=had_clean_shutdown,
        log_start_offset=log_start_offset,
        recovery_point=recovery_point,
        was_compacted=was_compacted,
    )
    try:
        log = Log(
            place,
            loader.load(),
            producers,
            epochs,
            failures=failures,
            high_watermark=high_watermark,
            report=loader.report,
        )
    except BaseException:
        place.segments.close_handlers()
        raise
    place.listed = None  # From here on others may change what is in the directory.
    if topic_id is not None:
        log.assign_topic_id(topic_id)
    return log
