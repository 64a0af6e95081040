"""
Opening a log: it makes the parts of a ``Log``, and recovers the log if needed.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from uuid import UUID

from barnabas.storage.clock import Clock
from barnabas.storage.config.log_config import LogConfig
from barnabas.storage.fs.interface import Files
from barnabas.storage.fs.log_dir_failure import LogDirFailureChannel
from barnabas.storage.log.directory import SegmentDirectory
from barnabas.storage.log.leader_epochs import LeaderEpochFileCache
from barnabas.storage.log.log import Log
from barnabas.storage.producers.snapshots import ProducerSnapshots
from barnabas.storage.producers.state import ProducerStateManager, ProducerStateManagerConfig
from barnabas.storage.recovery.loader import LogLoader
from barnabas.storage.recovery.swap_files import clean_up
from barnabas.storage.state_files.checkpoints import (
    LEADER_EPOCH_CHECKPOINT,
    LeaderEpochCheckpointFile,
)
from barnabas.storage.state_files.file_names import parse_topic_partition_name
from barnabas.storage.state_files.partition_metadata import (
    PARTITION_METADATA,
    read_partition_metadata,
)
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
    recovery_point: int | None = 0,
    high_watermark: int = 0,
    had_clean_shutdown: bool = True,
    was_compacted: bool = False,
    producer_config: ProducerStateManagerConfig | None = None,
    wake_at: Callable[[int], None] = lambda due_ms: None,
) -> Log:
    """
    Open the log in *directory*, which is created if it is missing.

    Args:
        topic_id: the id of the topic, if the log is new.
        log_start_offset: that of the checkpoint in the log directory.
        recovery_point: likewise; records below it are on the disk. None if no flush is known.
        high_watermark: likewise.
        had_clean_shutdown: whether nothing needs to be recovered.
        was_compacted: whether the log has ever been compacted, whatever *config* is now.
        producer_config: shared by all logs of a broker.
        wake_at: called with the time, in ms, at which to call ``remove_deleted_files``.

    Raises:
        InvalidLogDirectory: the name of *directory* is not one of a partition.
        InconsistentTopicId: the log belongs to another topic.
        CorruptRecord: the log was stopped cleanly, but cannot be read to its end.
        KafkaStorageError: the disk failed.
    """
    partition = parse_topic_partition_name(directory)
    deferred = DeferredWork(clock, wake_at)
    place = SegmentDirectory(
        directory, partition, config, files=files, clock=clock, deferred=deferred
    )
    try:
        names = clean_up(place)
    except FileNotFoundError:
        files.make_directory(directory)
        names = []
    # The directory is listed once, here, and no part looks for a file that does not exist. Without
    # that, creating a log takes 25% longer (benchmarks/partitions.py).
    checkpoint = LeaderEpochCheckpointFile(files, directory)
    has_epochs = LEADER_EPOCH_CHECKPOINT in names
    entries = checkpoint.read() if has_epochs else checkpoint.create()
    epochs = LeaderEpochFileCache(partition, checkpoint, entries, deferred.soon)
    snapshots = ProducerSnapshots(files, directory, names)
    producers = ProducerStateManager(
        partition, snapshots, producer_config or ProducerStateManagerConfig(), clock
    )
    loader = LogLoader(
        place,
        epochs,
        producers,
        names,
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
            topic_id=(
                read_partition_metadata(files, directory).topic_id
                if PARTITION_METADATA in names
                else None
            ),
            high_watermark=high_watermark,
            report=loader.report,
        )
    except BaseException:
        place.segments.close_handlers()
        raise
    if topic_id is not None:
        log.assign_topic_id(topic_id)
    return log
