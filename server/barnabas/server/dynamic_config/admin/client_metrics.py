"""
Subscriptions to metrics of clients. They have no effect.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from barnabas.coordination.cluster.image import ConfigResourceType
from barnabas.protocol.errors import InvalidConfig, InvalidRequest
from barnabas.server.config.client_metrics import (
    LEAST_INTERVAL_MS,
    LONGEST_INTERVAL_MS,
    ClientMetricsConfig,
)
from barnabas.server.dynamic_config.admin.entries import ConfigEntry
from barnabas.server.dynamic_config.admin.named import NamedKind
from barnabas.server.dynamic_config.brokers import ConfigSource
from barnabas.storage.config.option_values import ConfigError


class ClientMetricsKind(NamedKind):
    """
    Subscriptions to metrics of clients.
    """

    options = ClientMetricsConfig

    def check(self, name: str, configs: Mapping[str, str]) -> None:
        if not name:
            raise InvalidRequest("Subscription name can't be empty")
        for option in configs:
            if not self.knows(option):
                raise InvalidRequest(f"Unknown client metrics configuration: {option}")
        try:
            interval_ms = ClientMetricsConfig.parse(configs).interval_ms
        except ConfigError as error:
            raise InvalidConfig(str(error)) from error
        if not LEAST_INTERVAL_MS <= interval_ms <= LONGEST_INTERVAL_MS:
            raise InvalidRequest(
                f"Invalid value {interval_ms} for interval.ms, interval must be between"
                f" {LEAST_INTERVAL_MS} and {LONGEST_INTERVAL_MS} (1 hour)"
            )

    def describe(self, name: str) -> Sequence[ConfigEntry]:
        if not name:
            raise InvalidRequest("Client metrics subscription name must not be empty")
        stored = self._image.config(ConfigResourceType.CLIENT_METRICS, name)
        entries = []
        for option_name, option in ClientMetricsConfig.options().items():
            synonyms = []
            if option_name in stored:
                synonyms = [self._own(option, stored, ConfigSource.CLIENT_METRICS)]
            value = synonyms[0].value if synonyms else option.format(option.default)
            entries.append(ConfigEntry.of(option, value, synonyms))
        return entries
