from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from barnabas.coordination.cluster.image import ConfigResourceType, MetadataImage, config_record
from barnabas.coordination.config.groups import GroupConfig, within_limits
from barnabas.server.config import BrokerConfig
from barnabas.server.dynamic_config.brokers import BrokerConfigs
from barnabas.server.dynamic_config.groups import GroupConfigs
from barnabas.storage.config.option_values import ConfigError

GROUP = "g"


class Cluster:
    def __init__(self, **options: Any) -> None:
        self.stored: dict[str, str] = {}
        self.options = options
        self.levels: dict[str, str] = {}
        brokers = SimpleNamespace(
            of_all_brokers=self.levels, of_this_broker={}, current=lambda: BrokerConfig(**options)
        )
        image = SimpleNamespace(config=self._config, config_changes=0)
        self.configs = GroupConfigs(cast(BrokerConfigs, brokers), cast(MetadataImage, image))

    def _config(self, kind: ConfigResourceType, name: str) -> dict[str, str]:
        return self.stored if (kind, name) == (ConfigResourceType.GROUP, GROUP) else {}


def test_group_config_has_its_own_options_and_those_of_the_broker() -> None:
    cluster = Cluster(group_consumer_session_timeout_ms=46_000)
    cluster.stored["consumer.heartbeat.interval.ms"] = "6000"

    own, other = cluster.configs.of(GROUP), cluster.configs.of("other")

    assert (6000, 46_000) == (own.consumer_heartbeat_interval_ms, own.consumer_session_timeout_ms)
    assert (5000, 46_000) == (
        other.consumer_heartbeat_interval_ms,
        other.consumer_session_timeout_ms,
    )


def test_changed_group_config_applies_at_once() -> None:
    cluster = Cluster()
    before = cluster.configs.of(GROUP)
    cluster.stored["consumer.session.timeout.ms"] = "50000"

    assert 50_000 == cluster.configs.of(GROUP).consumer_session_timeout_ms
    cluster.stored.clear()

    assert before == cluster.configs.of(GROUP)


@pytest.mark.parametrize("broker", ["", "1"])
def test_changed_broker_config_applies_to_groups_at_once(broker: str) -> None:
    image = MetadataImage()
    configs = GroupConfigs(BrokerConfigs(BrokerConfig(), image, 1), image)
    option = "group.consumer.assignment.interval.ms"
    before = configs.of(GROUP).consumer_assignment_interval_ms

    for value in ("50", "60", None):
        image.apply(config_record(ConfigResourceType.BROKER, broker, option, value)[0])

        expected = before if value is None else int(value)
        assert expected == configs.of(GROUP).consumer_assignment_interval_ms


@pytest.mark.parametrize(
    ("stored", "effective"),
    [("44999", 45_000), ("45000", 45_000), ("60000", 60_000), ("60001", 60_000)],
)
def test_group_config_beyond_the_broker_limits_is_clamped(stored: str, effective: int) -> None:
    """
    The config was stored while the broker had other limits.
    """
    cluster = Cluster()
    cluster.stored["consumer.session.timeout.ms"] = stored

    assert effective == cluster.configs.of(GROUP).consumer_session_timeout_ms


def test_standby_replicas_of_a_group_are_limited_by_the_broker() -> None:
    broker = BrokerConfig(group_streams_max_standby_replicas=1)

    assert {"streams.num.standby.replicas": "1"} == within_limits(
        {"streams.num.standby.replicas": "2"}, broker
    )


def test_group_configs_without_limits_are_unchanged() -> None:
    stored = {"share.auto.offset.reset": "earliest"}

    assert stored == within_limits(stored, BrokerConfig())


def test_stored_group_configs_that_contradict_each_other_are_used() -> None:
    """
    As in Kafka; the broker's limits may have changed.
    """
    cluster = Cluster(
        group_consumer_session_timeout_ms=6000,
        group_consumer_min_session_timeout_ms=6000,
    )
    cluster.stored["consumer.heartbeat.interval.ms"] = "7000"

    config = cluster.configs.of(GROUP)

    assert (7000, 6000) == (
        config.consumer_heartbeat_interval_ms,
        config.consumer_session_timeout_ms,
    )


@pytest.mark.parametrize("kind", ["consumer", "share", "streams"])
def test_group_session_timeout_must_exceed_the_heartbeat_interval(kind: str) -> None:
    limits: dict[str, Any] = {f"group_{kind}_min_session_timeout_ms": 1}
    broker = BrokerConfig(**limits)
    config = GroupConfig.parse({f"{kind}.session.timeout.ms": "5000"})

    with pytest.raises(ConfigError) as refused:
        config.check_limits(broker)

    assert f"{kind}.session.timeout.ms must be greater than {kind}.heartbeat.interval.ms" == str(
        refused.value
    )


def test_group_limits_are_checked_before_consistency() -> None:
    config = GroupConfig.parse({"consumer.session.timeout.ms": "5"})

    with pytest.raises(ConfigError, match=r"group\.consumer\.min\.session\.timeout\.ms"):
        config.check_limits(BrokerConfig())
