"""
Configs of groups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from barnabas.coordination.cluster.image import ConfigResourceType, MetadataImage
from barnabas.coordination.config.groups import GroupConfig
from barnabas.protocol.errors import InvalidConfig, InvalidRequest
from barnabas.server.dynamic_config.admin.entries import ConfigEntry
from barnabas.server.dynamic_config.admin.named import NamedKind
from barnabas.server.dynamic_config.brokers import (
    BrokerConfigs,
    ConfigSource,
    ConfigValue,
    known_option,
)
from barnabas.server.dynamic_config.groups import inherited
from barnabas.storage.config.option_values import ConfigError, Option


class GroupConfigKind(NamedKind):
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
