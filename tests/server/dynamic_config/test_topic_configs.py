from __future__ import annotations

from collections.abc import Mapping

import pytest

from barnabas.coordination.cluster.image import MetadataImage
from barnabas.protocol.errors import InvalidConfig
from barnabas.protocol.internal_topics import metadata_records as records
from barnabas.server.config import BrokerConfig
from barnabas.server.dynamic_config.brokers import BrokerConfigs, ConfigSource
from barnabas.server.dynamic_config.topics import TopicConfigs
from barnabas.storage.config.log_config import LogConfig

S = ConfigSource


def configs(
    static: Mapping[str, str] | None = None,
    stored: Mapping[tuple[int, str], Mapping[str, str]] | None = None,
) -> TopicConfigs:
    """
    The configs of a cluster whose node 1 has *static* options, with what is *stored* in its log.
    """
    image = MetadataImage()
    for (resource_type, resource_name), values in (stored or {}).items():
        for name, value in values.items():
            image.apply(
                records.ConfigRecord(
                    resource_type=resource_type, resource_name=resource_name, name=name, value=value
                )
            )
    return TopicConfigs(BrokerConfigs(BrokerConfig.parse(static or {}), image, 1), image)


TOPIC, THIS, ALL = (2, "t"), (4, "1"), (4, "")


def test_default_broker_gives_topics_their_defaults() -> None:
    assert LogConfig() == configs().default()
    assert LogConfig() == configs().log_config("t")


def test_most_specific_config_level_takes_precedence() -> None:
    """
    Topic, this broker, all brokers, configuration file, default.
    """
    levels = [
        (TOPIC, "retention.ms", "1"),
        (THIS, "log.retention.ms", "2"),
        (ALL, "log.retention.ms", "3"),
    ]
    for dropped in range(len(levels) + 1):
        stored = {resource: {name: value} for resource, name, value in levels[dropped:]}
        made = configs({"log.retention.ms": "4"}, stored)
        assert dropped + 1 == made.log_config("t").retention_ms
    assert 7 * 24 * 3_600_000 == configs().log_config("t").retention_ms


@pytest.mark.scenario(57)
@pytest.mark.parametrize(
    ("static", "expected"),
    [
        ({"log.retention.hours": "2"}, 7_200_000),
        ({"log.retention.hours": "168", "log.retention.minutes": "5"}, 300_000),
        (
            {
                "log.retention.hours": "168",
                "log.retention.minutes": "5",
                "log.retention.ms": "60000",
            },
            60_000,
        ),
        ({"log.retention.hours": "2", "log.retention.minutes": "3"}, 180_000),
        ({"log.retention.hours": "2", "log.retention.ms": "5"}, 5),
        ({"log.retention.minutes": "-5"}, -1),
        ({"log.retention.ms": "-2"}, -1),
    ],
)
def test_finest_unit_of_retention_takes_precedence(static: dict[str, str], expected: int) -> None:
    """
    Any negative value is unlimited.
    """
    assert expected == configs(static).default().retention_ms


def test_roll_jitter_and_flush_options_have_several_units() -> None:
    made = configs(
        {
            "log.roll.hours": "1",
            "log.roll.jitter.hours": "2",
            "log.flush.scheduler.interval.ms": "9",
        }
    ).default()

    assert (3_600_000, 7_200_000, 9) == (made.segment_ms, made.segment_jitter_ms, made.flush_ms)


def test_invalid_stored_topic_config_is_ignored() -> None:
    stored = {
        "retention.ms": "5",
        "message.format.version": "2.8",
        "remote.storage.enable": "true",
        "segment.bytes": "1",
    }

    made = configs(stored={TOPIC: stored}).log_config("t")

    assert (5, False, 1024**3) == (
        made.retention_ms,
        made.remote_storage_enable,
        made.segment_bytes,
    )


def test_topic_config_is_checked_against_those_of_the_broker() -> None:
    made = configs({"log.cleaner.max.compaction.lag.ms": "5"})

    with pytest.raises(InvalidConfig, match="conflict topic config setting"):
        made.check({"min.compaction.lag.ms": "10"})


def test_create_topics_response_lists_all_configs_with_their_source() -> None:
    made = configs(
        {"log.retention.hours": "2", "compression.type": "zstd"},
        {ALL: {"min.insync.replicas": "1"}, THIS: {"log.flush.interval.ms": "7"}},
    ).describe({"segment.ms": "44", "internal.segment.bytes": "100"})

    found = {name: (value, source) for name, value, source in made}
    assert 34 == len(found)
    assert list(found) == sorted(found)
    assert ("7200000", S.STATIC_BROKER) == found["retention.ms"]
    assert ("zstd", S.STATIC_BROKER) == found["compression.type"]
    assert ("1", S.DYNAMIC_DEFAULT_BROKER) == found["min.insync.replicas"]
    assert ("7", S.DYNAMIC_BROKER) == found["flush.ms"]
    assert ("44", S.DYNAMIC_TOPIC) == found["segment.ms"]
    assert ("100", S.DYNAMIC_TOPIC) == found["internal.segment.bytes"]
    assert ("0.5", S.DEFAULT) == found["min.cleanable.dirty.ratio"]
    assert 33 == len(configs().describe({}))


def test_config_synonyms_are_listed_from_the_effective_one_to_the_default() -> None:
    made = configs(
        {"log.retention.ms": "4", "log.retention.hours": "1"}, {ALL: {"log.retention.ms": "3"}}
    ).brokers

    assert [
        ("log.retention.ms", "3", S.DYNAMIC_DEFAULT_BROKER),
        ("log.retention.ms", "4", S.STATIC_BROKER),
        ("log.retention.hours", "1", S.STATIC_BROKER),
        ("log.retention.hours", "168", S.DEFAULT),
    ] == made.values("log.retention.ms")
    assert [
        ("log.retention.hours", "1", S.STATIC_BROKER),
        ("log.retention.hours", "168", S.DEFAULT),
    ] == made.values("log.retention.hours")


def test_option_set_only_in_another_unit_has_no_synonyms() -> None:
    """
    Kafka does not list the hours when the milliseconds are asked for.
    """
    made = configs({"log.retention.hours": "1"}).brokers

    assert [] == made.values("log.retention.ms")
