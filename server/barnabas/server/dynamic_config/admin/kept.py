"""
Configs of groups, and of subscriptions to metrics of clients. The latter have no effect.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from barnabas.coordination.cluster.image import ConfigResourceType, MetadataImage
from barnabas.coordination.config.groups import GroupConfig
from barnabas.protocol.errors import InvalidConfig, InvalidRequest
from barnabas.server.config.client_metrics import (
    LEAST_INTERVAL_MS,
    LONGEST_INTERVAL_MS,
    ClientMetricsConfig,
)
from barnabas.server.dynamic_config.admin.changes import ConfigKind
from barnabas.server.dynamic_config.admin.entries import ConfigEntry
from barnabas.server.dynamic_config.brokers import (
    BrokerConfigs,
    ConfigSource,
    ConfigValue,
    known_option,
)
from barnabas.server.dynamic_config.groups import inherited
from barnabas.storage.config.option_values import ConfigError, Option
from barnabas.storage.config.options import Options


class _Kept(ConfigKind):
    """
    The common part of both kinds. Any name can have configs, also that of a group that does not
    exist.
    """

    options: type[Options]

    def __init__(self, image: MetadataImage) -> None:
        self._image = image

    def knows(self, option: str) -> bool:
        return option in self.options.options()

    def is_list(self, option: str) -> bool:
        """
        False for all: Kafka's controller knows the types of brokers' and topics' options only.
        """
        return False

    def default(self, option: str) -> str | None:
        raise AssertionError(f"nothing is appended to {option}")

    def _own(self, option: Option, given: Mapping[str, str], source: ConfigSource) -> ConfigValue:
        text = option.format(option.parse(given[option.name]))
        return ConfigValue(option.name, text, source)


class GroupConfigKind(_Kept):
    """
    Groups of all protocols.
    """

    options = GroupConfig

    def __init__(self, configs: BrokerConfigs, image: MetadataImage) -> None:
        super().__init__(image)
        self._configs = configs

    def check(self, name: str, configs: Mapping[str, str]) -> None:
        if not name:
            raise InvalidRequest("Default group resources are not allowed.")
        broker = self._configs.current()
        try:
            GroupConfig.parse(inherited(broker) | dict(configs)).check_limits(broker)
        except ConfigError as error:
            raise InvalidConfig(str(error)) from error

    def describe(self, name: str) -> Sequence[ConfigEntry]:
        if not name:
            raise InvalidRequest("Group name must not be empty")
        stored = self._image.config(ConfigResourceType.GROUP, name)
        entries = []
        for option_name, option in GroupConfig.options().items():
            synonyms = self._inherited(option)
            if option_name in stored:
                synonyms = [self._own(option, stored, ConfigSource.GROUP), *synonyms]
            entries.append(ConfigEntry.of(option, synonyms[0].value, synonyms))
        return entries

    def _inherited(self, option: Option) -> list[ConfigValue]:
        name = option.synonyms[0] if option.synonyms else option.name
        if option.synonyms and known_option(name) is not None:
            return self._configs.values(name)
        return [ConfigValue(name, option.format(option.default), ConfigSource.DEFAULT)]


class ClientMetricsKind(_Kept):
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
