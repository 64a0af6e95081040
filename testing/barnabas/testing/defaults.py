"""
The configuration of a broker in a test.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from barnabas.server.config import Listener
from barnabas.server.config.sources import Settings
from barnabas.storage.config.option_values import ConfigError
from barnabas.storage.config.quantities import plain_value
from barnabas.testing.errors import InvalidConfig, hides_frame

__tracebackhide__ = hides_frame

Value: TypeAlias = "str | int | float | bool"
Config: TypeAlias = Mapping[str, Value]
"""
Options by their Kafka names, such as ``{"log.retention.ms": 60_000}``. A text may have a unit:
``{"log.retention.ms": "7d"}``.
"""

DEFAULTS: Final[Mapping[str, str]] = {
    # One test has few consumers and transactions: no need to spread them, or to wait for more.
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    # Work that is done every few seconds of the clock and changes nothing that a client sees: a
    # week that passes at once would consist of it.
    "metadata.max.idle.interval.ms": "0",
    "replica.high.watermark.checkpoint.interval.ms": "3600000",
    "log.flush.offset.checkpoint.interval.ms": "3600000",
    "log.flush.start.offset.checkpoint.interval.ms": "3600000",
    "producer.id.expiration.check.interval.ms": "86400000",
    # Kafka looks every 15 and every 10 seconds.
    "log.cleaner.backoff.ms": "300000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "60000",
    # As much as the keys of a test need, in place of 128 MiB.
    "log.cleaner.dedupe.buffer.size": "8388608",
}
"""
The options whose defaults differ from Kafka's.
"""

IN_MEMORY: Final[Mapping[str, str]] = {
    # An index is made as large as it may become, and memory has no sparse files.
    "log.index.size.max.bytes": "262144",
}
"""
More of them, for a broker whose files are in memory.
"""


def settings_of(
    given: Config, *, log_dir: str, listeners: Sequence[Listener], in_memory: bool
) -> Settings:
    """
    The settings of a broker in a test.

    Args:
        listeners: those of an earlier start, whose ports it keeps; without any it has those that
            are *given*, or a free port of 127.0.0.1.

    Raises:
        InvalidConfig: an option is unknown, or its value is not acceptable.
    """
    texts = {
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "log.dirs": log_dir,
        **DEFAULTS,
        **(IN_MEMORY if in_memory else {}),
        **texts_of(given),
    }
    if listeners:
        texts["listeners"] = ",".join(map(str, listeners))
    settings = Settings()
    try:
        for name, text in texts.items():
            settings.add(name, text)
        settings.config()
    except ConfigError as error:
        raise InvalidConfig(str(error)) from None
    return settings


def partition_counts(topics: Mapping[str, int] | Iterable[str]) -> dict[str, int]:
    """
    The number of partitions of each topic: one, unless *topics* says otherwise.

    Raises:
        TypeError: *topics* is one text, whose letters would become topics.
    """
    if isinstance(topics, str):
        raise TypeError(f"topics is a list or a dict, as in topics=[{topics!r}]")
    return dict(topics) if isinstance(topics, Mapping) else dict.fromkeys(topics, 1)


def texts_of(given: Config) -> dict[str, str]:
    """
    Options as a properties file has them: ``604800000`` for ``{"retention.ms": "7d"}``.

    Raises:
        InvalidConfig: a unit does not fit its option.
    """
    try:
        return {name: plain_value(name, _text(value)) for name, value in given.items()}
    except ConfigError as error:
        raise InvalidConfig(str(error)) from None


def _text(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
