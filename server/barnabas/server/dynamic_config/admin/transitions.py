"""
The limits for changes of a running broker's options.

A number of threads may be halved or doubled at most, and options that depend on each other must
stay consistent (the ``validateReconfiguration`` of Kafka's ``DynamicThreadPool``, ``LogCleaner``
and ``DynamicLogConfig``).
"""

from __future__ import annotations

from typing import Final

from barnabas.server.dynamic_config.brokers import BrokerConfigs
from barnabas.server.dynamic_config.cleaner import cleaner_settings
from barnabas.storage.config.option_values import ConfigError, InvalidValue
from barnabas.storage.log.retention import UNLIMITED
from barnabas.storage.units import HOURS, MINUTES

_THREADS: Final = (
    "background.threads",
    "num.io.threads",
    "num.network.threads",
    "num.recovery.threads.per.data.dir",
    "num.replica.fetchers",
    "remote.log.manager.copier.thread.pool.size",
    "remote.log.manager.expiration.thread.pool.size",
    "remote.log.manager.follower.thread.pool.size",
    "remote.log.reader.threads",
)
_SAME: Final = -2
"""
The local retention that equals the retention of the whole log.
"""


def check_transition(old: BrokerConfigs, new: BrokerConfigs) -> None:
    """
    Raises:
        ConfigError: a running broker cannot change from *old* to *new*.
    """
    for name in _THREADS:
        _check_threads(name, old.effective(name), new.effective(name))
    _check_cleaner(old, new)
    _check_local_retention("log.local.retention.ms", "log.retention.ms", new, _retention_ms(new))
    _check_local_retention(
        "log.local.retention.bytes",
        "log.retention.bytes",
        new,
        new.effective("log.retention.bytes"),
    )


def _check_threads(name: str, old: int, new: int) -> None:
    start = f"Dynamic thread count update validation failed for {name}={new}"
    if new < old // 2:
        raise ConfigError(f"{start}, value should be at least half the current value {old}")
    if new > old * 2:
        raise ConfigError(
            f"{start}, value should not be greater than double the current value {old}"
        )


def _check_cleaner(old: BrokerConfigs, new: BrokerConfigs) -> None:
    settings, changed = cleaner_settings(old), cleaner_settings(new)
    if settings == changed or not settings.enabled:
        return
    try:
        settings.check_change(changed)
    except ValueError as error:
        raise ConfigError(str(error)) from error


def _check_local_retention(name: str, whole: str, new: BrokerConfigs, limit: int) -> None:
    local = new.effective(name)
    if limit <= UNLIMITED or local == _SAME:
        return
    if local == UNLIMITED:
        raise InvalidValue(name, local, f"Value must not be -1 as {whole} value is set as {limit}.")
    if local > limit:
        raise InvalidValue(
            name, local, f"Value must not be more than {whole} property value: {limit}"
        )


def _retention_ms(configs: BrokerConfigs) -> int:
    for name, unit in (
        ("log.retention.ms", 1),
        ("log.retention.minutes", MINUTES),
        ("log.retention.hours", HOURS),
    ):
        value = configs.effective(name)
        if value is not None:
            return UNLIMITED if value < 0 else int(value) * unit
    raise AssertionError("log.retention.hours has a default")
