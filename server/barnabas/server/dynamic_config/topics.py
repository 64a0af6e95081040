"""
The configs of topics: the source of each value, and the resulting configuration.

The value of a topic's option is the first one of: the topic's stored config, then the broker's
synonyms, most specific level first::

    1 topic   2 this broker, stored   3 all brokers, stored   4 configuration of this broker
    5 default

Some options have several synonyms in different units, such as ``log.retention.ms``, ``.minutes``
and ``.hours`` (Kafka ``ServerTopicConfigSynonyms``); a finer unit wins over a coarser one.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from barnabas.coordination.cluster.image import ConfigResourceType, MetadataImage
from barnabas.coordination.cluster.partition_changes import MIN_INSYNC_REPLICAS, UNCLEAN_ELECTION
from barnabas.protocol.errors import InvalidConfig
from barnabas.server.dynamic_config.brokers import BrokerConfigs, ConfigSource, ConfigValue, unit_of
from barnabas.storage.config.log_config import LogConfig
from barnabas.storage.config.option_values import ConfigError, Option
from barnabas.storage.log.retention import UNLIMITED

logger = logging.getLogger(__name__)


class TopicConfigs:
    """
    Resolves and checks the configs of topics.
    """

    def __init__(self, brokers: BrokerConfigs, image: MetadataImage) -> None:
        self.brokers = brokers
        self._image = image
        self._default: tuple[Any, LogConfig] | None = None

    def of(self, topic: str) -> Mapping[str, str]:
        """
        The stored configs of a topic.
        """
        return self._image.config(ConfigResourceType.TOPIC, topic)

    def default(self) -> LogConfig:
        """
        The configuration of a topic without stored configs.
        """
        stored = (dict(self.brokers.of_this_broker), dict(self.brokers.of_all_brokers))
        if self._default is None or self._default[0] != stored:
            values = {}
            for name, option in LogConfig.options().items():
                value = self._inherited(option)
                if value is not None:
                    values[name.replace(".", "_")] = value
            self._default = (stored, LogConfig(**values))
        return self._default[1]

    def election_defaults(self) -> Mapping[str, str]:
        """
        The configs for elections where neither topic nor cluster has a value.
        """
        options = self.brokers.static.options()
        return {
            name: str(options[name].format(getattr(self.brokers.static, name.replace(".", "_"))))
            for name in (MIN_INSYNC_REPLICAS, UNCLEAN_ELECTION)
        }

    def log_config(self, topic: str) -> LogConfig:
        """
        The configuration of the logs of a topic.

        Invalid stored configs are ignored, such as tiered storage or options of an older Apache
        Kafka, so that the topic is served.
        """
        config = self.default()
        try:
            return config.overridden(self.of(topic))
        except ConfigError:
            for name, value in self.of(topic).items():
                try:
                    config = config.overridden({name: value})
                except ConfigError as error:
                    logger.warning("Topic %s: %s=%s is ignored: %s", topic, name, value, error)
            return config

    def check(self, configs: Mapping[str, str]) -> None:
        """
        Raises:
            InvalidConfig: *configs* may not be stored for a topic.
        """
        try:
            self.default().overridden(configs)
        except ConfigError as error:
            raise InvalidConfig(str(error)) from error

    def describe(self, configs: Mapping[str, str]) -> list[ConfigValue]:
        """
        All options of a topic that has *configs*, by name (Kafka ``KafkaConfigSchema``).
        """
        return [
            self._resolve(name, option, configs)
            for name, option in sorted(LogConfig.options().items())
            if not option.internal or name in configs
        ]

    def _resolve(self, name: str, option: Option, configs: Mapping[str, str]) -> ConfigValue:
        if name in configs:
            return ConfigValue(name, configs[name], ConfigSource.DYNAMIC_TOPIC)
        for source, given in self.brokers.levels():
            for synonym in option.synonyms:
                if synonym in given:
                    text = _in_own_unit(synonym, given[synonym])
                    return ConfigValue(name, text, source)
        return ConfigValue(name, option.format(option.default), ConfigSource.DEFAULT)

    def _inherited(self, option: Option) -> Any:
        for synonym in option.synonyms:
            value = self.brokers.effective(synonym)
            if value is None:
                continue
            if len(option.synonyms) > 1 and value < 0:
                return UNLIMITED
            return value * unit_of(synonym) if unit_of(synonym) > 1 else value
        return option.default


def _in_own_unit(name: str, text: str) -> str:
    unit = unit_of(name)
    return text if unit == 1 else str(int(text) * unit)
