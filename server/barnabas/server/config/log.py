"""
Options of logs: the defaults of topics, and the work in the background.

An option that is a default of a topic's own option says which one; the topic's option has the words
and the range of the two.
"""

from __future__ import annotations

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
    Log directories, and when segments roll, leave and reach the disk.
    """

    log_dir: Names = option(("data",), "The log directory, where log.dirs is not set.")
    log_dirs: Names | None = option(None, "The log directories.")
    log_segment_bytes: Int = option(
        1 * GiB, "Roll the active segment before it grows past this.", at_least=MiB, update=NOW
    )
    log_roll_ms: Long | None = option(
        None, "Roll the active segment when it spans more than this.", at_least=1, update=NOW
    )
    log_roll_hours: Int = option(
        168, "The same in hours, where log.roll.ms is not set.", at_least=1
    )
    log_roll_jitter_ms: Long | None = option(
        None, "Roll earlier by a random time of up to this.", at_least=0, update=NOW
    )
    log_roll_jitter_hours: Int = option(
        0, "The same in hours, where log.roll.jitter.ms is not set.", at_least=0
    )
    log_retention_ms: Long | None = option(
        None, "Delete segments whose records are older than this; -1 keeps them.", update=NOW
    )
    log_retention_minutes: Int | None = option(
        None, "The same in minutes, where log.retention.ms is not set."
    )
    log_retention_hours: Int = option(168, "The same in hours, where neither of them is set.")
    log_retention_bytes: Long = option(
        -1, "Delete the oldest segments while the log stays this large; -1 keeps them.", update=NOW
    )
    log_retention_check_interval_ms: Long = option(
        5 * MINUTES, "How often segments are checked against retention.", at_least=1
    )
    log_segment_delete_delay_ms: Long = option(
        60 * SECONDS,
        "How long files and partitions marked as deleted stay on the disk.",
        at_least=0,
        update=NOW,
    )
    log_cleanup_policy: Names = option(
        ("delete",),
        "What happens to old segments: delete them, compact them by key, both or neither.",
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
        False, "Give a new segment its full size at once, filled with zeros.", update=NOW
    )
    log_flush_interval_messages: Long = option(
        LONG_MAX,
        "Sync a log to the disk once this many records are unsynced; 1 syncs every append.",
        at_least=1,
        update=NOW,
    )
    log_flush_interval_ms: Long | None = option(
        None, "Sync a log to the disk once its last sync is this long ago.", update=NOW
    )
    log_flush_scheduler_interval_ms: Long = option(
        LONG_MAX, "How often logs are checked against log.flush.interval.ms."
    )
    log_flush_offset_checkpoint_interval_ms: Int = option(
        60 * SECONDS, "How often recovery points are written.", at_least=0
    )
    log_flush_start_offset_checkpoint_interval_ms: Int = option(
        60 * SECONDS, "How often log start offsets are written.", at_least=0
    )
    log_initial_task_delay_ms: Long = option(
        30 * SECONDS, "How long after the start background tasks begin.", at_least=0, internal=True
    )
    log_dir_failure_timeout_ms: Long = option(
        30 * SECONDS, "How long Apache Kafka waits to report a failed log directory.", at_least=1
    )
    replica_high_watermark_checkpoint_interval_ms: Long = option(
        5 * SECONDS, "How often high watermarks are written."
    )
    num_recovery_threads_per_data_dir: Int = option(
        2, "How many logs of a directory are loaded and closed at a time.", at_least=1, update=NOW
    )
    background_threads: Int = option(
        10,
        "How many threads there can be for each of cold reads, syncs, changes of metadata and logs,"
        " and upkeep.",
        at_least=1,
        update=NOW,
    )
    producer_id_expiration_ms: Int = option(
        1 * DAYS, "Forget an idle producer's sequence numbers after this.", at_least=1, update=NOW
    )
    producer_id_expiration_check_interval_ms: Int = option(
        10 * MINUTES, "How often idle producers are looked for.", at_least=1, internal=True
    )


@section
class RecordOptions(Options):
    """
    What a topic takes from producers, unless it says otherwise.
    """

    message_max_bytes: Int = option(
        MiB + 12, "The largest record batch taken, as it is stored.", at_least=0, update=NOW
    )
    compression_type: Text = option(
        "producer",
        "The codec that batches are stored in; producer keeps the codec they came in.",
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
        "Whose clock stamps the records: the producer's or, at the append, the broker's.",
        one_of=("CreateTime", "LogAppendTime"),
        update=NOW,
    )
    log_message_timestamp_before_max_ms: Long = option(
        LONG_MAX, "How far a record's timestamp may lie in the past.", at_least=0, update=NOW
    )
    log_message_timestamp_after_max_ms: Long = option(
        1 * HOURS, "How far a record's timestamp may lie in the future.", at_least=0, update=NOW
    )
    min_insync_replicas: Int = option(
        1,
        "How many replicas must be in sync for acks=all; never more than a partition has.",
        at_least=1,
        update=NOW,
    )
    unclean_leader_election_enable: Bool = option(
        False, "Whether a replica that is behind may lead; with one replica none is.", update=NOW
    )
    log_local_retention_ms: Long = option(
        -2, "As retention.ms for the local part of a tiered log.", at_least=-2, update=NOW
    )
    log_local_retention_bytes: Long = option(
        -2, "As retention.bytes for the local part of a tiered log.", at_least=-2, update=NOW
    )


@section
class CleanerOptions(Options):
    """
    Compaction.
    """

    log_cleaner_enable: Bool = option(True, "Whether compacted topics are compacted.")
    log_cleaner_threads: Int = option(1, "How many threads compact.", at_least=0, update=NOW)
    log_cleaner_dedupe_buffer_size: Long = option(
        128 * MiB, "The memory for keys of all cleaner threads together.", update=NOW
    )
    log_cleaner_io_buffer_size: Int = option(
        512 * KiB,
        "The memory for reading and writing of all cleaner threads.",
        at_least=0,
        update=NOW,
    )
    log_cleaner_io_buffer_load_factor: Double = option(
        0.9, "How full the table of keys may get.", update=NOW
    )
    log_cleaner_io_max_bytes_per_second: Double = option(
        1.7976931348623157e308, "The most that all cleaner threads read and write.", update=NOW
    )
    log_cleaner_backoff_ms: Long = option(
        15 * SECONDS,
        "How long a cleaner thread rests when there was nothing to do.",
        at_least=0,
        update=NOW,
    )
    log_cleaner_delete_retention_ms: Long = option(
        1 * DAYS, "How long tombstones of compacted topics can be read.", at_least=0, update=NOW
    )
    log_cleaner_min_cleanable_ratio: Double = option(
        0.5,
        "Compact a log once more than this part of it is dirty.",
        at_least=0,
        at_most=1,
        update=NOW,
    )
    log_cleaner_min_compaction_lag_ms: Long = option(
        0, "Leave records alone for this long.", at_least=0, update=NOW
    )
    log_cleaner_max_compaction_lag_ms: Long = option(
        LONG_MAX, "Compact records at the latest after this.", at_least=1, update=NOW
    )


@section
class TopicOptions(Options):
    """
    How topics come and go.
    """

    auto_create_topics_enable: Bool = option(
        True, "Whether a topic that a client asks for comes into being."
    )
    num_partitions: Int = option(
        1, "How many partitions a topic has that does not say.", at_least=1
    )
    default_replication_factor: Int = option(
        1, "The replication factor of a topic that does not say; one node cannot have more than 1."
    )
    delete_topic_enable: Bool = option(True, "Whether topics can be deleted.")
    barnabas_max_decompressed_bytes: Int = option(
        256 * MiB,
        "The most bytes that a batch may become when it is decompressed. Below that, it may become "
        "64 MiB, or 256 times its size.",
        at_least=1,
    )
    barnabas_replication_factor_clamp: Bool = option(
        False, "Take a replication factor above 1 as 1, rather than refuse it."
    )
