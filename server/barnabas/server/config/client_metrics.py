"""
Options of subscriptions to the metrics of clients (KIP-714; Kafka's ``ClientMetricsConfigs``).

This broker does not collect metrics of clients. Subscriptions are checked, stored and described,
for an Apache Kafka that opens the directory.
"""

from __future__ import annotations

from typing import ClassVar, Final

from barnabas.coordination.regex.pattern import InvalidPattern, LinearPattern
from barnabas.coordination.regex.program import MOST_INSTRUCTIONS
from barnabas.storage.config.option_values import ConfigError
from barnabas.storage.config.options import (
    Int,
    Names,
    Options,
    option,
    table,
)
from barnabas.storage.units import MINUTES

LEAST_INTERVAL_MS: Final = 100
LONGEST_INTERVAL_MS: Final = 60 * MINUTES
_CLIENT_FACTS: Final = frozenset(
    {
        "client_instance_id",
        "client_id",
        "client_software_name",
        "client_software_version",
        "client_source_address",
        "client_source_port",
    }
)


@table
class ClientMetricsConfig(Options):
    """
    The configuration of one subscription.
    """

    kind: ClassVar[str] = "client metrics configuration:"

    metrics: Names = option((), "The prefixes of the metrics' names; * is all.", unique=True)
    interval_ms: Int = option(5 * MINUTES, "The interval in which clients send them.")
    match: Names = option((), "The clients that send them, as FACT=PATTERN.", unique=True)

    def check(self) -> None:
        size = 0
        for pattern in self.match:
            fact, equals, expression = pattern.partition("=")
            if not equals or "=" in expression or fact.strip() not in _CLIENT_FACTS:
                raise ConfigError(f"Illegal client matching pattern: {pattern}")
            try:
                size += LinearPattern(expression.strip()).size
            except InvalidPattern:
                raise ConfigError(f"Illegal client matching pattern: {pattern}") from None
            if size > MOST_INSTRUCTIONS:
                raise ConfigError("The client matching patterns are too large")
