"""
The common part of configs of groups and of subscriptions to client metrics.
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.coordination.cluster.image import MetadataImage
from barnabas.server.dynamic_config.admin.changes import ConfigKind
from barnabas.server.dynamic_config.brokers import ConfigSource, ConfigValue
from barnabas.storage.config.option_values import Option
from barnabas.storage.config.options import Options


class NamedKind(ConfigKind):
    """
    A kind of config that any name can have, also that of a group that does not exist.
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
