from __future__ import annotations

import pytest

from barnabas.protocol.compression import CompressionType
from barnabas.protocol.records.batch import TimestampType
from barnabas.storage.config.log_config import LogConfig
from barnabas.storage.config.option_values import (
    ConfigError,
    InvalidValue,
    OptionType,
    UnknownOption,
)

LONG_MAX = 2**63 - 1

# name, type, default, broker's options: as Apache Kafka 4.3 lists them.
TABLE = [
    ("cleanup.policy", "LIST", "delete", "log.cleanup.policy"),
    ("compression.gzip.level", "INT", "-1", "compression.gzip.level"),
    ("compression.lz4.level", "INT", "9", "compression.lz4.level"),
    ("compression.type", "STRING", "producer", "compression.type"),
    ("compression.zstd.level", "INT", "3", "compression.zstd.level"),
    ("delete.retention.ms", "LONG", "86400000", "log.cleaner.delete.retention.ms"),
    ("file.delete.delay.ms", "LONG", "60000", "log.segment.delete.delay.ms"),
    ("flush.messages", "LONG", str(LONG_MAX), "log.flush.interval.messages"),
    ("flush.ms", "LONG", str(LONG_MAX), "log.flush.interval.ms log.flush.scheduler.interval.ms"),
    ("follower.replication.throttled.replicas", "LIST", "", ""),
    ("index.interval.bytes", "INT", "4096", "log.index.interval.bytes"),
    ("internal.segment.bytes", "INT", None, ""),
    ("leader.replication.throttled.replicas", "LIST", "", ""),
    ("local.retention.bytes", "LONG", "-2", "log.local.retention.bytes"),
    ("local.retention.ms", "LONG", "-2", "log.local.retention.ms"),
    ("max.compaction.lag.ms", "LONG", str(LONG_MAX), "log.cleaner.max.compaction.lag.ms"),
    ("max.message.bytes", "INT", "1048588", "message.max.bytes"),
    ("message.timestamp.after.max.ms", "LONG", "3600000", "log.message.timestamp.after.max.ms"),
    (
        "message.timestamp.before.max.ms",
        "LONG",
        str(LONG_MAX),
        "log.message.timestamp.before.max.ms",
    ),
    ("message.timestamp.type", "STRING", "CreateTime", "log.message.timestamp.type"),
    ("min.cleanable.dirty.ratio", "DOUBLE", "0.5", "log.cleaner.min.cleanable.ratio"),
    ("min.compaction.lag.ms", "LONG", "0", "log.cleaner.min.compaction.lag.ms"),
    ("min.insync.replicas", "INT", "1", "min.insync.replicas"),
    ("preallocate", "BOOLEAN", "false", "log.preallocate"),
    ("remote.log.copy.disable", "BOOLEAN", "false", ""),
    ("remote.log.delete.on.disable", "BOOLEAN", "false", ""),
    ("remote.storage.enable", "BOOLEAN", "false", ""),
    ("retention.bytes", "LONG", "-1", "log.retention.bytes"),
    (
        "retention.ms",
        "LONG",
        "604800000",
        "log.retention.ms log.retention.minutes log.retention.hours",
    ),
    ("segment.bytes", "INT", "1073741824", "log.segment.bytes"),
    ("segment.index.bytes", "INT", "10485760", "log.index.size.max.bytes"),
    ("segment.jitter.ms", "LONG", "0", "log.roll.jitter.ms log.roll.jitter.hours"),
    ("segment.ms", "LONG", "604800000", "log.roll.ms log.roll.hours"),
    ("unclean.leader.election.enable", "BOOLEAN", "false", "unclean.leader.election.enable"),
]


def test_topic_options_are_those_of_kafka() -> None:
    kafkas = {name for name in LogConfig.options() if not name.startswith("barnabas.")}
    assert [row[0] for row in TABLE] == sorted(kafkas)


@pytest.mark.parametrize(("name", "kind", "default", "synonyms"), TABLE)
def test_topic_option_has_kafkas_type_default_and_synonyms(
    name: str, kind: str, default: str | None, synonyms: str
) -> None:
    option = LogConfig.options()[name]

    assert OptionType[kind] is option.type
    assert default == option.format(option.default)
    assert synonyms.split() == list(option.synonyms)
    assert option.doc.endswith(".")


def test_internal_options_are_hidden_from_clients() -> None:
    internal = [name for name, option in LogConfig.options().items() if option.internal]

    assert {"internal.segment.bytes", "barnabas.max.decompressed.bytes"} == set(internal)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("segment.bytes", "1048575"),
        ("segment.ms", "0"),
        ("segment.jitter.ms", "-1"),
        ("segment.index.bytes", "3"),
        ("flush.messages", "0"),
        ("flush.ms", "-1"),
        ("retention.ms", "-2"),
        ("max.message.bytes", "-1"),
        ("index.interval.bytes", "-1"),
        ("delete.retention.ms", "-1"),
        ("min.compaction.lag.ms", "-1"),
        ("max.compaction.lag.ms", "0"),
        ("file.delete.delay.ms", "-1"),
        ("min.cleanable.dirty.ratio", "1.01"),
        ("min.cleanable.dirty.ratio", "-0.1"),
        ("cleanup.policy", "delete,keep"),
        ("min.insync.replicas", "0"),
        ("compression.type", "none"),
        ("compression.gzip.level", "0"),
        ("compression.gzip.level", "10"),
        ("compression.lz4.level", "0"),
        ("compression.lz4.level", "18"),
        ("compression.zstd.level", "-131073"),
        ("compression.zstd.level", "23"),
        ("preallocate", "yes"),
        ("message.timestamp.type", "NoTimestampType"),
        ("message.timestamp.before.max.ms", "-1"),
        ("message.timestamp.after.max.ms", "-1"),
        ("local.retention.ms", "-3"),
        ("local.retention.bytes", "-3"),
        ("leader.replication.throttled.replicas", "0:1,x"),
        ("follower.replication.throttled.replicas", "*,0:1"),
        ("internal.segment.bytes", "many"),
    ],
)
def test_topic_option_value_that_kafka_refuses_is_refused(name: str, text: str) -> None:
    with pytest.raises(InvalidValue, match=name):
        LogConfig.parse({name: text})


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("retention.ms", "0"),
        ("retention.ms", "-1"),
        ("retention.bytes", "-7"),
        ("cleanup.policy", ""),
        ("cleanup.policy", "compact,compact"),
        ("cleanup.policy", "compact,delete"),
        ("segment.index.bytes", "4"),
        ("internal.segment.bytes", "0"),
        ("compression.gzip.level", "-1"),
        ("compression.zstd.level", "-131072"),
        ("leader.replication.throttled.replicas", "*"),
        ("leader.replication.throttled.replicas", "0:1, 12:3"),
        ("leader.replication.throttled.replicas", ""),
    ],
)
def test_topic_option_value_that_kafka_accepts_is_accepted(name: str, text: str) -> None:
    LogConfig.parse({name: text})


@pytest.mark.parametrize(
    "name",
    ["message.downconversion.enable", "message.format.version", "message.timestamp.difference.max"],
)
def test_unknown_topic_option_is_refused(name: str) -> None:
    with pytest.raises(UnknownOption, match=f"Unknown topic config name: {name}"):
        LogConfig.parse({name: "1"})


@pytest.mark.parametrize(
    ("config", "overrides", "sentence"),
    [
        (
            LogConfig(),
            {"min.compaction.lag.ms": "2", "max.compaction.lag.ms": "1"},
            r"min\.compaction\.lag\.ms \(2\) > max.* \(1\)",
        ),
        (
            LogConfig(max_compaction_lag_ms=5),
            {"min.compaction.lag.ms": "6"},
            "conflict topic config setting",
        ),
        (
            LogConfig(),
            {"remote.storage.enable": "true"},
            "Tiered Storage functionality is disabled",
        ),
    ],
)
def test_topic_options_that_contradict_each_other_are_refused(
    config: LogConfig, overrides: dict[str, str], sentence: str
) -> None:
    with pytest.raises(ConfigError, match=sentence):
        config.overridden(overrides)


def test_cleanup_policies_may_be_combined() -> None:
    both = LogConfig.parse({"cleanup.policy": "compact,delete"})
    neither = LogConfig.parse({"cleanup.policy": ""})

    assert (True, True) == (both.compact, both.delete)
    assert (False, False) == (neither.compact, neither.delete)


def test_internal_segment_bytes_has_precedence() -> None:
    assert 1024**3 == LogConfig().segment_size
    assert 1000 == LogConfig(internal_segment_bytes=1000).segment_size
    assert 0 == LogConfig(internal_segment_bytes=1000).init_file_size
    assert 1000 == LogConfig(internal_segment_bytes=1000, preallocate=True).init_file_size


def test_compacted_log_rolls_within_max_compaction_lag() -> None:
    config = LogConfig(max_compaction_lag_ms=100, segment_ms=200)

    assert 200 == config.max_segment_ms
    assert 100 == config.replaced(cleanup_policy=("compact",)).max_segment_ms


def test_roll_jitter_is_below_its_limit_and_segment_ms() -> None:
    wide = LogConfig(segment_jitter_ms=1000, segment_ms=10)

    assert 0 == LogConfig().random_segment_jitter()
    assert set(range(10)) == {wide.random_segment_jitter() for _ in range(1000)}


def test_message_timestamp_type_maps_to_the_batch_timestamp_type() -> None:
    assert TimestampType.CREATE_TIME is LogConfig().timestamp_type
    config = LogConfig(message_timestamp_type="LogAppendTime")
    assert TimestampType.LOG_APPEND_TIME is config.timestamp_type


@pytest.mark.parametrize(
    ("name", "codec", "level"),
    [
        ("producer", None, None),
        ("uncompressed", CompressionType.NONE, None),
        ("gzip", CompressionType.GZIP, 5),
        ("snappy", CompressionType.SNAPPY, None),
        ("lz4", CompressionType.LZ4, 6),
        ("zstd", CompressionType.ZSTD, 7),
    ],
)
def test_compression_type_maps_to_a_codec_and_its_level(
    name: str, codec: CompressionType | None, level: int | None
) -> None:
    config = LogConfig(
        compression_type=name,
        compression_gzip_level=5,
        compression_lz4_level=6,
        compression_zstd_level=7,
    )

    assert codec is config.target_compression
    assert level == config.compression_level(codec or CompressionType.ZSTD)


def test_default_gzip_level_is_that_of_zlib() -> None:
    assert None is LogConfig(compression_type="gzip").compression_level(CompressionType.GZIP)


def test_list_of_throttled_replicas_is_refused_with_kafkas_message() -> None:
    name = "leader.replication.throttled.replicas"
    with pytest.raises(InvalidValue) as caught:
        LogConfig.parse({name: "0:1,x"})

    form = "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
    assert (
        f"Invalid value [0:1, x] for configuration {name}: {name} must be the literal '*' or a list"
        f" of replicas in the following format: {form}"
    ) == str(caught.value)
