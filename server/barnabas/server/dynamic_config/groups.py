"""
The configurations of groups: their own options, and those of the broker for all others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from barnabas.coordination.cluster.image import ConfigResourceType, MetadataImage
from barnabas.coordination.config.groups import GroupConfig, within_limits
from barnabas.server.config import BrokerConfig
from barnabas.server.dynamic_config.brokers import BrokerConfigs


class GroupConfigs:
    """
    Finds the configuration of a group, whether that exists or not (Kafka's ``GroupConfigManager``).

    Invariants:

    1. A kept configuration is made of the options that are stored with it.
    2. What groups inherit is that of the broker's options after ``_changes`` changes of configs:
       heartbeats ask several times each, and nothing is compared then.

    Used on the event loop's thread only.
    """

    def __init__(self, brokers: BrokerConfigs, image: MetadataImage) -> None:
        self._brokers = brokers
        self._image = image
        self._changes = -1
        self._levels: Any = None
        self._inherited: dict[str, str] = {}
        self._default = GroupConfig()
        self._own: dict[str, tuple[Mapping[str, str], GroupConfig]] = {}

    def of(self, group_id: str) -> GroupConfig:
        """
        The configuration of a group, as it is now.
        """
        if self._changes != self._image.config_changes:
            self._changes = self._image.config_changes
            self._follow_broker()
        stored = self._image.config(ConfigResourceType.GROUP, group_id)
        if not stored:
            self._own.pop(group_id, None)
            return self._default
        known = self._own.get(group_id)
        if known is None or known[0] != stored:
            # Copied, since the image changes its mappings in place.
            effective = within_limits(stored, self._brokers.current())
            known = (dict(stored), GroupConfig.parse(self._inherited | effective))
            self._own[group_id] = known
        return known[1]

    def _follow_broker(self) -> None:
        levels = self._brokers.of_all_brokers, self._brokers.of_this_broker
        if levels != self._levels:
            self._levels = levels
            self._inherited = inherited(self._brokers.current())
            self._default = GroupConfig.parse(self._inherited)
            self._own.clear()


def inherited(broker: BrokerConfig) -> dict[str, str]:
    """
    The options of groups that the broker has a value for, as text.
    """
    texts: dict[str, str] = {}
    for name, option in GroupConfig.options().items():
        for synonym in option.synonyms:
            value = getattr(broker, synonym.replace(".", "_"), None)
            if value is not None:
                texts[name] = str(option.format(value))
    return texts
