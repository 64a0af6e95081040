from __future__ import annotations

import pytest

from barnabas.storage.config.option_values import ConfigError
from barnabas.storage.config.quantities import plain_value


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("retention.ms", "7d", "604800000"),
        ("retention.ms", "1.5h", "5400000"),
        ("retention.ms", "250 ms", "250"),
        ("log.retention.minutes", "2h", "120"),
        ("log.retention.hours", "1w", "168"),
        ("segment.bytes", "1GiB", "1073741824"),
        ("segment.bytes", "1GB", "1000000000"),
        ("segment.bytes", "64k", "65536"),
        ("log.cleaner.dedupe.buffer.size", "8MiB", "8388608"),
        ("log.index.size.max.bytes", "0.5MiB", "524288"),
        ("retention.ms", "-1", "-1"),
        ("retention.ms", "604800000", "604800000"),
        ("retention.ms", "soon", "soon"),
        ("cleanup.policy", "compact", "compact"),
        ("broker.rack", "7d", "7d"),
    ],
)
def test_value_with_a_unit_becomes_kafkas_number(name: str, text: str, expected: str) -> None:
    assert plain_value(name, text) == expected


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("retention.ms", "7GiB", "GiB is not a unit of retention.ms; write ms, s, min, h, d or w"),
        ("segment.bytes", "7d", "d is not a unit of segment.bytes; write B, KiB, MiB"),
        ("log.retention.hours", "90min", "is not a whole number of hours"),
        ("segment.bytes", "1.3B", "is not a whole number of bytes"),
    ],
)
def test_unit_that_does_not_fit_the_option_is_refused(name: str, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        plain_value(name, text)
