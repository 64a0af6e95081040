"""
What the configs of a group say about its records.
"""

from __future__ import annotations

import pytest

from barnabas.coordination.config.groups import GroupConfig
from barnabas.coordination.share.settings import ShareSettings
from barnabas.server.share.offset_reset import duration_ms
from barnabas.storage.config.option_values import ConfigError
from barnabas.storage.log.fetch_isolation import FetchIsolation
from tests.support.server import broker_config


def test_share_group_has_its_own_settings() -> None:
    own = GroupConfig.parse(
        {
            "share.record.lock.duration.ms": "20000",
            "share.delivery.count.limit": "7",
            "share.partition.max.record.locks": "300",
            "share.isolation.level": "read_committed",
            "share.renew.acknowledge.enable": "false",
            "share.auto.offset.reset": "EARLIEST",
        }
    )
    configs = {"own": own, "other": GroupConfig()}
    settings = ShareSettings(configs.__getitem__)

    found, other = settings.of("own"), settings.of("other")

    assert (20_000, 7, 300, "earliest", FetchIsolation.TXN_COMMITTED, False) == (
        found.record_lock_duration_ms,
        found.delivery_count_limit,
        found.max_record_locks,
        found.auto_offset_reset,
        found.isolation,
        found.may_renew,
    )
    assert (30_000, 5, 2000, "latest", FetchIsolation.HIGH_WATERMARK, True) == (
        other.record_lock_duration_ms,
        other.delivery_count_limit,
        other.max_record_locks,
        other.auto_offset_reset,
        other.isolation,
        other.may_renew,
    )
    assert found is settings.of("own")
    configs["own"] = GroupConfig()
    assert 5 == settings.of("own").delivery_count_limit


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("by_duration:p1d", 86_400_000),
        ("by_duration:pt1h30m", 5_400_000),
        ("by_duration:+p1dt0.25s", 86_400_250),
    ],
)
def test_durations_are_read(text: str, expected: int) -> None:
    assert expected == duration_ms(text)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("group.share.record.lock.duration.ms", "14999"),
        ("group.share.record.lock.duration.ms", "60001"),
        ("group.share.delivery.count.limit", "11"),
        ("group.share.partition.max.record.locks", "4001"),
    ],
)
def test_share_option_is_clamped_to_the_broker_limits(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=name):
        broker_config(**{name.replace(".", "_"): value})
