"""
The options of this broker, and the level that each value comes from.

There are three levels, of which a running broker can change the first two::

    1 this broker, stored   2 all brokers, stored   3 configuration of this broker   (4 default)

Clients, an earlier release or an Apache Kafka may have stored options. Those that cannot be applied
are ignored: options that are read at the start only, invalid values, and unknown names (Kafka's
``DynamicBrokerConfig.fromPersistentProps``).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from enum import IntEnum
from typing import Any, Final

from barnabas.coordination.cluster.image import ConfigResourceType, MetadataImage
from barnabas.coordination.config.group_protocols import check_limits
from barnabas.protocol.structs import NamedTuple
from barnabas.server.config import BrokerConfig
from barnabas.server.config.dynamic_only import DynamicOnlyOptions
from barnabas.server.config.security import LISTENER_PREFIX, is_taken_while_running
from barnabas.storage.config.log_config import LogConfig
from barnabas.storage.config.option_values import ConfigError, Option, Update
from barnabas.storage.units import HOURS, MINUTES

logger = logging.getLogger(__name__)

_UNITS: Final[Mapping[str, int]] = {".hours": HOURS, ".minutes": MINUTES}


class ConfigSource(IntEnum):
    """
    The source of a value, with its number on the wire (``DescribeConfigsResponse``).
    """

    UNKNOWN = 0
    DYNAMIC_TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class ConfigValue(NamedTuple):
    """
    A value under one of its names, as text.
    """

    name: str
    value: str | None
    source: ConfigSource


class BrokerConfigs:
    """
    The options of this broker, by the level that gives their value.

    Invariants:

    1. All values in ``levels`` can be parsed, and together they are a valid configuration.
    """

    def __init__(self, config: BrokerConfig, image: MetadataImage, node_id: int) -> None:
        self.static = config
        self._image = image
        self._node = str(node_id)
        self._usable: tuple[Any, tuple[Mapping[str, str], Mapping[str, str]]] | None = None

    @property
    def of_all_brokers(self) -> Mapping[str, str]:
        """
        The applied options among those that are stored for all brokers.
        """
        return self._stored()[0]

    @property
    def of_this_broker(self) -> Mapping[str, str]:
        """
        The applied options among those that are stored for this broker.
        """
        return self._stored()[1]

    def stored(self, name: str) -> Mapping[str, str]:
        """
        The stored options of a broker, or with an empty *name* of all brokers.
        """
        return self._image.config(ConfigResourceType.BROKER, name)

    def levels(self) -> tuple[tuple[ConfigSource, Mapping[str, str]], ...]:
        """
        The options of each level, the most specific level first.
        """
        return (
            (ConfigSource.DYNAMIC_BROKER, self.of_this_broker),
            (ConfigSource.DYNAMIC_DEFAULT_BROKER, self.of_all_brokers),
            (ConfigSource.STATIC_BROKER, self.static.given),
        )

    def values(self, name: str) -> list[ConfigValue]:
        """
        All values of an option under its names, in order of precedence, the default last.

        Values before the option's own name are left out, as in Kafka's ``ConfigHelper``.
        """
        names = _alternatives(name)
        found = [
            ConfigValue(alternative, given[alternative], source)
            for source, given in self.levels()
            for alternative in names
            if alternative in given
        ]
        for alternative in names:
            option = known_option(alternative)
            if option is not None and option.default is not None:
                text = option.format(option.default)
                found.append(ConfigValue(alternative, text, ConfigSource.DEFAULT))
        own = [index for index, value in enumerate(found) if value.name == name]
        return found[own[0] :] if own else []

    def effective(self, name: str) -> Any:
        """
        The value of one option, parsed, without its alternatives.
        """
        option = known_option(name)
        assert option is not None, f"no option is called {name}"
        for _, given in self.levels():
            if name in given:
                return option.parse(given[name])
        return option.default

    def current(self) -> BrokerConfig:
        """
        The current configuration, including stored options.
        """
        return _combined(self.static, self.of_all_brokers, self.of_this_broker)

    def texts(self) -> Mapping[str, str]:
        """
        All options that are set, with their texts; those of single listeners, too.
        """
        return self._texts(self.stored(""), self.stored(self._node))

    def texts_with(self, changed: Mapping[str, str], *, per_broker: bool) -> Mapping[str, str]:
        """
        The same with *changed* in place of the stored ones of this broker, or of all brokers.
        """
        every, this = self.stored(""), self.stored(self._node)
        every, this = (every, changed) if per_broker else (changed, this)
        return self._texts(every, this)

    def _texts(self, every: Mapping[str, str], this: Mapping[str, str]) -> Mapping[str, str]:
        """
        Those of the start, and the stored ones that a running broker takes.
        """
        taken = {
            name: text
            for name, text in {**every, **this}.items()
            if dynamic_option(name) is not None
            or (name.startswith(LISTENER_PREFIX) and is_taken_while_running(name))
        }
        return {**self.static.given, **taken}

    def supposing(self, changed: Mapping[str, str], *, per_broker: bool) -> BrokerConfigs:
        """
        These options with *changed* in place of the stored ones of this broker, or of all brokers.

        Raises:
            ConfigError: together they are no valid configuration.
        """
        every, this = self._stored()
        every, this = (every, changed) if per_broker else (changed, this)
        supposed = BrokerConfigs(self.static, MetadataImage(), int(self._node))
        _check_together(self.static, every, this)
        supposed._usable = (({}, {}), (every, this))
        return supposed

    def _stored(self) -> tuple[Mapping[str, str], Mapping[str, str]]:
        stored = (self.stored(""), self.stored(self._node))
        if self._usable is None or self._usable[0] != stored:
            usable = tuple(_usable(values) for values in stored)
            every, this = _fitting(self.static, usable[0], usable[1])
            # Copied, since the image changes its mappings in place.
            self._usable = ((dict(stored[0]), dict(stored[1])), (every, this))
        return self._usable[1]


def dynamic_option(name: str) -> Option | None:
    """
    The option with that name, if a running broker takes new values for it.
    """
    option = known_option(name)
    return None if option is None or option.update is Update.READ_ONLY else option


def known_option(name: str) -> Option | None:
    """
    The option with that name, whether or not it has an effect here.
    """
    return BrokerConfig.options().get(name) or DynamicOnlyOptions.options().get(name)


def unit_of(name: str) -> int:
    """
    The unit of the option, in units of the topic's option.
    """
    return next((unit for suffix, unit in _UNITS.items() if name.endswith(suffix)), 1)


def _alternatives(name: str) -> tuple[str, ...]:
    """
    *name* and its synonyms in other units.
    """
    for option in LogConfig.options().values():
        # log.flush.scheduler.interval.ms stands in for log.flush.interval.ms and not the reverse.
        if name in option.synonyms[:1] or (name in option.synonyms and unit_of(name) > 1):
            return option.synonyms
    return (name,)


def _usable(stored: Mapping[str, str]) -> dict[str, str]:
    usable = {}
    for name, text in stored.items():
        option = dynamic_option(name)
        if option is None:
            continue
        try:
            option.parse(text)
        except ConfigError as error:
            logger.warning("A stored option of brokers is ignored: %s", error)
        else:
            usable[name] = text
    return usable


def _fitting(
    static: BrokerConfig, every: dict[str, str], this: dict[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """
    The stored values that together are a valid configuration.
    """
    try:
        _check_together(static, every, this)
    except ConfigError as error:
        logger.warning("Stored options of brokers contradict each other: %s", error)
    else:
        return every, this
    fitting: tuple[dict[str, str], dict[str, str]] = ({}, {})
    for place, values in zip(fitting, (every, this), strict=True):
        for name, text in values.items():
            place[name] = text
            try:
                _check_together(static, *fitting)
            except ConfigError as error:
                del place[name]
                logger.warning("%s=%s is ignored: %s", name, text, error)
    return fitting


def _check_together(
    static: BrokerConfig, every: Mapping[str, str], this: Mapping[str, str]
) -> None:
    config = _combined(static, every, this)
    check_limits(config)
    low, high = config.log_cleaner_min_compaction_lag_ms, config.log_cleaner_max_compaction_lag_ms
    if low > high:
        raise ConfigError(
            f"log.cleaner.min.compaction.lag.ms ({low}) > log.cleaner.max.compaction.lag.ms"
            f" ({high})"
        )


def _combined(
    static: BrokerConfig, every: Mapping[str, str], this: Mapping[str, str]
) -> BrokerConfig:
    known = BrokerConfig.options()
    changed = {name: text for name, text in {**every, **this}.items() if name in known}
    return static.overridden(changed) if changed else static
