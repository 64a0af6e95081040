"""
The configs of topics.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from barnabas.coordination.cluster.image import MetadataImage
from barnabas.coordination.cluster.topic_names import validate_topic_name
from barnabas.protocol.errors import InvalidRequest, UnknownTopicOrPartition
from barnabas.server.dynamic_config.admin.changes import ConfigKind
from barnabas.server.dynamic_config.admin.entries import ConfigEntry
from barnabas.server.dynamic_config.brokers import ConfigSource, ConfigValue
from barnabas.server.dynamic_config.topics import TopicConfigs
from barnabas.storage.config.log_config import LogConfig
from barnabas.storage.config.option_values import OptionType


class TopicConfigKind(ConfigKind):
    """
    Topics, whose options default to those of the broker.
    """

    def __init__(self, configs: TopicConfigs, image: MetadataImage) -> None:
        self._configs = configs
        self._image = image

    def knows(self, option: str) -> bool:
        return option in LogConfig.options()

    def is_list(self, option: str) -> bool:
        known = LogConfig.options().get(option)
        return known is not None and known.type is OptionType.LIST

    def default(self, option: str) -> str | None:
        known = LogConfig.options()[option]
        return known.format(known.default)

    def check(self, name: str, configs: Mapping[str, str]) -> None:
        if not name:
            raise InvalidRequest("Default topic resources are not allowed.")
        validate_topic_name(name)
        self._configs.check(configs)

    def check_exists(self, name: str) -> None:
        if name not in self._image.topics_by_name:
            raise UnknownTopicOrPartition(f"The topic '{name}' does not exist.")

    def describe(self, name: str) -> Sequence[ConfigEntry]:
        validate_topic_name(name)
        if name not in self._image.topics_by_name:
            raise UnknownTopicOrPartition("")  # Kafka says no more than the code.
        stored = self._configs.of(name)
        effective = self._configs.log_config(name)
        entries = []
        for option_name, option in LogConfig.options().items():
            if option.internal and option_name not in stored:
                continue
            text = option.format(getattr(effective, option_name.replace(".", "_")))
            synonyms: list[ConfigValue] = []
            if option.synonyms:
                synonyms = self._configs.brokers.values(option.synonyms[0])
            if option_name in stored:
                own = ConfigValue(option_name, text, ConfigSource.DYNAMIC_TOPIC)
                synonyms = [own, *synonyms]
            entries.append(ConfigEntry.of(option, text, synonyms))
        return entries
