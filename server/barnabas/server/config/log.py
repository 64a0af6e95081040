"""
Options of logs: the defaults of topics, and background work.
"""

from __future__ import annotations

import sys

from barnabas.storage.config.option_values import Update
from barnabas.storage.config.options import (
    Bool,
    Double,
    Int,
    Long,
    Names,
    Options,
    Text,
    option,
    section,
)
from barnabas.storage.units import DAYS, HOURS, LONG_MAX, MINUTES, SECONDS, GiB, KiB, MiB

NOW = Update.CLUSTER_WIDE


@section
class LogOptions(Options):
    """
    Log directories, and the rolling, retention and flushing of segments.
    """

    log_dir: Names = option(("data",), "The log directory, if log.dirs is not set.")
    log_dirs: Names | None = option(None, "The log directories.")
    log_segment_bytes: Int = option(
        1 * GiB, "The size at which the active segment is rolled.", at_least=MiB, update=NOW
    )
    log_roll_ms: Long | None = option(
        None, "The age at which the active segment is rolled.", at_least=1, update=NOW
    )
    log_roll_hours: Int = option(168, "The same in hours, if log.roll.ms is not set.", at_least=1)
    log_roll_jitter_ms: Long | None = option(
        None,
        "The longest random time by which a segment is rolled earlier.",
        at_least=0,
        update=NOW,
    )
    log_roll_jitter_hours: Int = option(
        0, "The same in hours, if log.roll.jitter.ms is not set.", at_least=0
    )
    log_retention_ms: Long | None = option(
        None, "Delete segments whose records are older than this; -1 keeps them.", update=NOW
    )
    log_retention_minutes: Int | None = option(
        None, "The same in minutes, if log.retention.ms is not set."
    )
    log_retention_hours: Int = option(168, "The same in hours, if neither of these is set.")
    log_retention_bytes: Long = option(
        -1, "Delete the oldest segments of a log larger than this; -1 keeps them.", update=NOW
    )
    log_retention_check_interval_ms: Long = option(
        5 * MINUTES, "The interval of retention checks.", at_least=1
    )
    log_segment_delete_delay_ms: Long = option(
        60 * SECONDS,
        "The time from the deletion of a file or partition to its removal from the disk.",
        at_least=0,
        update=NOW,
    )
    log_cleanup_policy: Names = option(
        ("delete",),
        "The policy for old segments: delete, compact by key, both or none.",
        one_of=("compact", "delete"),
        update=NOW,
    )
    log_index_size_max_bytes: Int = option(
        10 * MiB, "The size of each index file of an active segment.", at_least=4, update=NOW
    )
    log_index_interval_bytes: Int = option(
        4 * KiB,
        "Add an index entry at most once per this many bytes of log.",
        at_least=0,
        update=NOW,
    )
    log_preallocate: Bool = option(
        False, "Whether the file of a new segment is created at its full size.", update=NOW
    )
    log_flush_interval_messages: Long = option(
        LONG_MAX,
        "Flush a log after this many records; 1 flushes every append.",
        at_least=1,
        update=NOW,
    )
    log_flush_interval_ms: Long | None = option(
        None, "Flush a log after this time since its last flush.", update=NOW
    )
    log_flush_scheduler_interval_ms: Long = option(
        LONG_MAX, "The interval of checks for log.flush.interval.ms."
    )
    log_flush_offset_checkpoint_interval_ms: Int = option(
        60 * SECONDS, "The interval of checkpoints of recovery points.", at_least=0
    )
    log_flush_start_offset_checkpoint_interval_ms: Int = option(
        60 * SECONDS, "The interval of checkpoints of log start offsets.", at_least=0
    )
    log_initial_task_delay_ms: Long = option(
        30 * SECONDS,
        "The time from the start to the first background tasks.",
        at_least=0,
        internal=True,
    )
    log_dir_failure_timeout_ms: Long = option(
        30 * SECONDS,
        "The time that Apache Kafka waits to report a failed log directory.",
        at_least=1,
    )
    replica_high_watermark_checkpoint_interval_ms: Long = option(
        5 * SECONDS, "The interval of checkpoints of high watermarks."
    )
    num_recovery_threads_per_data_dir: Int = option(
        2, "The threads for loading and closing the logs of a directory.", at_least=1, update=NOW
    )
    background_threads: Int = option(
        10,
        "The most threads for each of: cold reads, fsyncs, changes of metadata and logs, and"
        " maintenance.",
        at_least=1,
        update=NOW,
    )
    producer_id_expiration_ms: Int = option(
        1 * DAYS,
        "Remove the sequence numbers of a producer that is idle for this long.",
        at_least=1,
        update=NOW,
    )
    producer_id_expiration_check_interval_ms: Int = option(
        10 * MINUTES, "The interval of checks for idle producers.", at_least=1, internal=True
    )


@section
class RecordOptions(Options):
    """
    Defaults of topics for the records of producers.
    """

    message_max_bytes: Int = option(
        MiB + 12, "The largest record batch, as it is stored.", at_least=0, update=NOW
    )
    compression_type: Text = option(
        "producer",
        "The codec of stored batches; producer keeps the producer's codec.",
        one_of=("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
        update=NOW,
    )
    compression_gzip_level: Int = option(
        -1,
        "The gzip level; -1 is the library's default.",
        at_least=1,
        at_most=9,
        also=(-1,),
        update=NOW,
    )
    compression_lz4_level: Int = option(9, "The lz4 level.", at_least=1, at_most=17, update=NOW)
    compression_zstd_level: Int = option(
        3, "The zstd level.", at_least=-131072, at_most=22, update=NOW
    )
    log_message_timestamp_type: Text = option(
        "CreateTime",
        "The timestamps of records: the producer's, or the time of the append.",
        one_of=("CreateTime", "LogAppendTime"),
        update=NOW,
    )
    log_message_timestamp_before_max_ms: Long = option(
        LONG_MAX, "The farthest timestamp in the past.", at_least=0, update=NOW
    )
    log_message_timestamp_after_max_ms: Long = option(
        1 * HOURS, "The farthest timestamp in the future.", at_least=0, update=NOW
    )
    min_insync_replicas: Int = option(
        1,
        "The replicas in sync that acks=all requires, at most all of a partition.",
        at_least=1,
        update=NOW,
    )
    unclean_leader_election_enable: Bool = option(
        False, "Whether a replica that is not in sync may lead.", update=NOW
    )
    log_local_retention_ms: Long = option(
        -2, "retention.ms for the local part of a tiered log.", at_least=-2, update=NOW
    )
    log_local_retention_bytes: Long = option(
        -2, "retention.bytes for the local part of a tiered log.", at_least=-2, update=NOW
    )


@section
class CleanerOptions(Options):
    """
    Compaction.
    """

    log_cleaner_enable: Bool = option(True, "Whether the log cleaner runs.")
    log_cleaner_threads: Int = option(1, "The threads of the log cleaner.", at_least=0, update=NOW)
    log_cleaner_dedupe_buffer_size: Long = option(
        128 * MiB, "The memory of all cleaner threads for their tables of keys.", update=NOW
    )
    log_cleaner_io_buffer_size: Int = option(
        512 * KiB,
        "The memory of all cleaner threads for their I/O buffers.",
        at_least=0,
        update=NOW,
    )
    log_cleaner_io_buffer_load_factor: Double = option(
        0.9, "The highest load factor of a table of keys.", update=NOW
    )
    log_cleaner_io_max_bytes_per_second: Double = option(
        sys.float_info.max,
        "The most bytes a second that all cleaner threads read and write.",
        update=NOW,
    )
    log_cleaner_backoff_ms: Long = option(
        15 * SECONDS,
        "The pause of a cleaner thread without work.",
        at_least=0,
        update=NOW,
    )
    log_cleaner_delete_retention_ms: Long = option(
        1 * DAYS,
        "The time for which tombstones of compacted topics can be read.",
        at_least=0,
        update=NOW,
    )
    log_cleaner_min_cleanable_ratio: Double = option(
        0.5,
        "Compact a log whose dirty ratio is higher than this.",
        at_least=0,
        at_most=1,
        update=NOW,
    )
    log_cleaner_min_compaction_lag_ms: Long = option(
        0, "The time before a record may be compacted.", at_least=0, update=NOW
    )
    log_cleaner_max_compaction_lag_ms: Long = option(
        LONG_MAX, "The time after which a record is compacted.", at_least=1, update=NOW
    )


@section
class TopicOptions(Options):
    """
    Creation and deletion of topics.
    """

    auto_create_topics_enable: Bool = option(
        True, "Whether a request for an unknown topic creates it."
    )
    num_partitions: Int = option(1, "The default number of partitions of a topic.", at_least=1)
    default_replication_factor: Int = option(
        1, "The default replication factor of a topic; one node cannot have more than 1."
    )
    delete_topic_enable: Bool = option(True, "Whether topics can be deleted.")
    barnabas_max_decompressed_bytes: Int = option(
        256 * MiB,
        "The most decompressed bytes of a batch. Below that, a batch may have "
        "64 MiB, or 256 times its compressed size.",
        at_least=1,
    )
    barnabas_replication_factor_clamp: Bool = option(
        False, "Whether a replication factor above 1 is taken as 1 instead of refused."
    )
