"""
The options of a topic for its logs.

A topic's option that is not set has the broker's option of the same meaning for a default: its
synonyms say which, first one set wins, hours and minutes being turned into milliseconds
(Kafka's LogConfig and ServerTopicConfigSynonyms).
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import ClassVar, Final

from barnabas.protocol.compression import CompressionType
from barnabas.protocol.records.batch import TimestampType
from barnabas.storage.config.option_values import ConfigError, Validator
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
    table,
)
from barnabas.storage.units import DAYS, HOURS, INT_MAX, LONG_MAX, GiB, KiB, MiB

COMPACT: Final = "compact"
DELETE: Final = "delete"
PRODUCER: Final = "producer"
"""The compression type of a topic that keeps batches in the codec that they came in."""

_TARGETS: Final = {
    "uncompressed": CompressionType.NONE,
    "gzip": CompressionType.GZIP,
    "snappy": CompressionType.SNAPPY,
    "lz4": CompressionType.LZ4,
    "zstd": CompressionType.ZSTD,
}
_TIMESTAMP_TYPES: Final = {
    "CreateTime": TimestampType.CREATE_TIME,
    "LogAppendTime": TimestampType.LOG_APPEND_TIME,
}
_REPLICA: Final = re.compile(r"([0-9]+:[0-9]+)?")


def _are_replicas(names: tuple[str, ...]) -> bool:
    return "".join(names) == "*" or all(_REPLICA.fullmatch(name) for name in names)


_REPLICAS: Final = Validator(
    "[partitionId]:[brokerId],[partitionId]:[brokerId],...",
    _are_replicas,
    "{name} must be the literal '*' or a list of replicas in the following format: "
    "[partitionId]:[brokerId],[partitionId]:[brokerId],...",
)


@section
class SegmentOptions(Options):
    """
    When segments begin, end, and reach the disk.
    """

    segment_bytes: Int = option(
        1 * GiB,
        "Roll the active segment before it grows past this.",
        at_least=MiB,
        synonyms=("log.segment.bytes",),
    )
    segment_ms: Long = option(
        7 * DAYS,
        "Roll the active segment when its records span more than this.",
        at_least=1,
        synonyms=("log.roll.ms", "log.roll.hours"),
    )
    segment_jitter_ms: Long = option(
        0,
        "Roll earlier by a random time of up to this, so that logs do not all roll at once.",
        at_least=0,
        synonyms=("log.roll.jitter.ms", "log.roll.jitter.hours"),
    )
    segment_index_bytes: Int = option(
        10 * MiB,
        "The size of each index file of an active segment; it rolls when one of them is full.",
        at_least=4,
        synonyms=("log.index.size.max.bytes",),
    )
    flush_messages: Long = option(
        LONG_MAX,
        "Sync the log to the disk once this many records are unsynced; 1 syncs every append.",
        at_least=1,
        synonyms=("log.flush.interval.messages",),
    )
    flush_ms: Long = option(
        LONG_MAX,
        "Sync the log to the disk once its last sync is this long ago.",
        at_least=0,
        synonyms=("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
    )
    index_interval_bytes: Int = option(
        4 * KiB,
        "Add an index entry at most once per this many bytes of log.",
        at_least=0,
        synonyms=("log.index.interval.bytes",),
    )
    preallocate: Bool = option(
        False,
        "Give a new segment its full size at once, filled with zeros.",
        synonyms=("log.preallocate",),
    )
    internal_segment_bytes: Int | None = option(
        None, "In place of segment.bytes, without a lower limit; for tests.", internal=True
    )


@section
class RetentionOptions(Options):
    """
    When records leave.
    """

    cleanup_policy: Names = option(
        (DELETE,),
        "What happens to old segments: delete them, compact them by key, both or neither.",
        one_of=(COMPACT, DELETE),
        synonyms=("log.cleanup.policy",),
    )
    retention_bytes: Long = option(
        -1,
        "Delete the oldest segments while the log stays this large; -1 keeps them.",
        synonyms=("log.retention.bytes",),
    )
    retention_ms: Long = option(
        7 * DAYS,
        "Delete segments whose records are older than this; -1 keeps them.",
        at_least=-1,
        synonyms=("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    )
    file_delete_delay_ms: Long = option(
        60_000,
        "How long files marked as deleted stay on the disk.",
        at_least=0,
        synonyms=("log.segment.delete.delay.ms",),
    )
    delete_retention_ms: Long = option(
        1 * DAYS,
        "How long tombstones of a compacted topic can be read.",
        at_least=0,
        synonyms=("log.cleaner.delete.retention.ms",),
    )
    min_compaction_lag_ms: Long = option(
        0,
        "Leave records alone for this long.",
        at_least=0,
        synonyms=("log.cleaner.min.compaction.lag.ms",),
    )
    max_compaction_lag_ms: Long = option(
        LONG_MAX,
        "Compact records at the latest after this.",
        at_least=1,
        synonyms=("log.cleaner.max.compaction.lag.ms",),
    )
    min_cleanable_dirty_ratio: Double = option(
        0.5,
        "Compact the log once more than this part of it is dirty.",
        at_least=0,
        at_most=1,
        synonyms=("log.cleaner.min.cleanable.ratio",),
    )


@section
class TopicRecordOptions(Options):
    """
    The batches that are accepted, and their compression and timestamps.
    """

    max_message_bytes: Int = option(
        MiB + 12,
        "The largest record batch taken, as it is stored.",
        at_least=0,
        synonyms=("message.max.bytes",),
    )
    barnabas_max_decompressed_bytes: Int = option(
        256 * MiB,
        "The most bytes that a batch may become when it is decompressed. Below that, it may become "
        "64 MiB, or 256 times its size.",
        at_least=1,
        synonyms=("barnabas.max.decompressed.bytes",),
        internal=True,
    )
    compression_type: Text = option(
        PRODUCER,
        "The codec that batches are stored in; producer keeps the codec they came in.",
        one_of=("uncompressed", "zstd", "lz4", "snappy", "gzip", PRODUCER),
        synonyms=("compression.type",),
    )
    compression_gzip_level: Int = option(
        -1,
        "The gzip level; -1 is the library's default.",
        at_least=1,
        at_most=9,
        also=(-1,),
        synonyms=("compression.gzip.level",),
    )
    compression_lz4_level: Int = option(
        9, "The lz4 level.", at_least=1, at_most=17, synonyms=("compression.lz4.level",)
    )
    compression_zstd_level: Int = option(
        3, "The zstd level.", at_least=-131072, at_most=22, synonyms=("compression.zstd.level",)
    )
    message_timestamp_type: Text = option(
        "CreateTime",
        "Whose clock stamps the records: the producer's or, at the append, the broker's.",
        one_of=("CreateTime", "LogAppendTime"),
        synonyms=("log.message.timestamp.type",),
    )
    message_timestamp_before_max_ms: Long = option(
        LONG_MAX,
        "How far a record's timestamp may lie in the past.",
        at_least=0,
        synonyms=("log.message.timestamp.before.max.ms",),
    )
    message_timestamp_after_max_ms: Long = option(
        1 * HOURS,
        "How far a record's timestamp may lie in the future.",
        at_least=0,
        synonyms=("log.message.timestamp.after.max.ms",),
    )


@section
class TopicReplicationOptions(Options):
    """
    Options for several brokers or tiered storage. They can be set, and have no effect here.
    """

    min_insync_replicas: Int = option(
        1,
        "How many replicas must be in sync for acks=all; never more than a partition has.",
        at_least=1,
        synonyms=("min.insync.replicas",),
    )
    unclean_leader_election_enable: Bool = option(
        False,
        "Whether a replica that is behind may lead; with one replica none is.",
        synonyms=("unclean.leader.election.enable",),
    )
    leader_replication_throttled_replicas: Names = option(
        (), "Replicas whose replication is slowed down on the leader's side.", validator=_REPLICAS
    )
    follower_replication_throttled_replicas: Names = option(
        (), "Replicas whose replication is slowed down on the follower's side.", validator=_REPLICAS
    )
    remote_storage_enable: Bool = option(
        False, "Whether old segments move to remote storage, which this broker does not have."
    )
    local_retention_ms: Long = option(
        -2,
        "As retention.ms for the local part of a tiered log; -2 is the same.",
        at_least=-2,
        synonyms=("log.local.retention.ms",),
    )
    local_retention_bytes: Long = option(
        -2,
        "As retention.bytes for the local part of a tiered log; -2 is the same.",
        at_least=-2,
        synonyms=("log.local.retention.bytes",),
    )
    remote_log_copy_disable: Bool = option(
        False, "Whether segments of a tiered log stop moving to remote storage."
    )
    remote_log_delete_on_disable: Bool = option(
        False, "Whether what is in remote storage is deleted when tiering is switched off."
    )


@table
class LogConfig(SegmentOptions, RetentionOptions, TopicRecordOptions, TopicReplicationOptions):
    """
    The configuration that counts for a log.

    Invariants:

    1. Every value is in its option's range, and the values fit one another.
    2. It never changes: a log that gets another configuration gets another object.
    """

    kind: ClassVar[str] = "topic config name:"

    def check(self) -> None:
        if self.min_compaction_lag_ms > self.max_compaction_lag_ms:
            raise ConfigError(
                "conflict topic config setting min.compaction.lag.ms "
                f"({self.min_compaction_lag_ms}) > max.compaction.lag.ms "
                f"({self.max_compaction_lag_ms})"
            )
        if self.remote_storage_enable:
            raise ConfigError(
                "Tiered Storage functionality is disabled in the broker. Topic cannot be "
                "configured with remote log storage."
            )

    @property
    def compact(self) -> bool:
        return COMPACT in self.cleanup_policy

    @property
    def delete(self) -> bool:
        return DELETE in self.cleanup_policy

    @property
    def segment_size(self) -> int:
        """
        Bytes that a segment does not grow past.
        """
        internal = self.internal_segment_bytes
        return self.segment_bytes if internal is None else internal

    @property
    def max_segment_ms(self) -> int:
        """
        ``segment.ms``, or less where records may not wait that long for compaction, which never
        touches an active segment.
        """
        if self.compact:
            return min(self.max_compaction_lag_ms, self.segment_ms)
        return self.segment_ms

    @property
    def init_file_size(self) -> int:
        """
        Bytes that a new segment has at once.
        """
        return self.segment_size if self.preallocate else 0

    def random_segment_jitter(self) -> int:
        """
        By how many ms one segment is rolled earlier than ``max_segment_ms`` says.
        """
        if self.segment_jitter_ms == 0:
            return 0
        import random  # noqa: PLC0415  # hardly anybody asks for jitter

        return random.randint(0, INT_MAX) % min(self.segment_jitter_ms, self.segment_ms)

    @cached_property
    def timestamp_type(self) -> TimestampType:
        return _TIMESTAMP_TYPES[self.message_timestamp_type]

    @cached_property
    def target_compression(self) -> CompressionType | None:
        """
        The codec that batches are stored in; None for the one that they came in.
        """
        return _TARGETS.get(self.compression_type)

    def compression_level(self, codec: CompressionType) -> int | None:
        """
        The level for batches of *codec*; None for the default of its library.

        The levels are settings of ``compression.type``: where that is ``producer``, a batch that
        has to be rebuilt is compressed at the codec's default.
        """
        if codec is not self.target_compression:
            return None
        if codec is CompressionType.GZIP:
            level = self.compression_gzip_level
            return None if level == -1 else level
        if codec is CompressionType.LZ4:
            return self.compression_lz4_level
        if codec is CompressionType.ZSTD:
            return self.compression_zstd_level
        return None
