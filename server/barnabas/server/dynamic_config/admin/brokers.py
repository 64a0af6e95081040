"""
The configs of this broker, and those of all brokers.

A running broker takes new values for some of its options; the others are read at its start (Kafka's
``DynamicBrokerConfig``). Unknown names are stored as well: they may be options of plugins, which
this broker does not have, or of other releases.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from barnabas.coordination.cluster.image import MetadataImage
from barnabas.protocol.errors import (
    BrokerIdNotRegistered,
    InvalidConfig,
    InvalidRequest,
    joined,
)
from barnabas.server.config import BrokerConfig
from barnabas.server.config.authorization import OF_THE_AUTHORIZER
from barnabas.server.config.compatibility import (
    INERT_OPTIONS,
    REFUSED_OPTIONS,
)
from barnabas.server.config.connection_limits import listener_connections, listener_rate
from barnabas.server.config.security import LISTENER_PREFIX
from barnabas.server.dynamic_config.admin.changes import (
    AlterResource,
    ConfigChange,
    ConfigKind,
    ConfigOperation,
    changed_value,
)
from barnabas.server.dynamic_config.admin.entries import ConfigEntry
from barnabas.server.dynamic_config.admin.transitions import check_transition
from barnabas.server.dynamic_config.brokers import (
    BrokerConfigs,
    ConfigSource,
    ConfigValue,
    dynamic_option,
    known_option,
)
from barnabas.server.security.listeners import Security
from barnabas.storage.config.option_values import ConfigError, OptionType, Update
from barnabas.storage.units import INT_MAX

_NUMBER: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)

_PER_LISTENER: Final = frozenset(
    f"ssl.{name}"
    for name in (
        "key.password",
        "keystore.certificate.chain",
        "keystore.key",
        "keystore.location",
        "keystore.password",
        "keystore.type",
        "truststore.certificates",
        "truststore.location",
        "truststore.password",
        "truststore.type",
    )
)

_WITHOUT_EFFECT: Final = frozenset(
    [
        "metric.reporters",
        "principal.builder.class",
        "sasl.kerberos.kinit.cmd",
        "sasl.kerberos.min.time.before.relogin",
        "sasl.kerberos.principal.to.local.rules",
        "sasl.kerberos.service.name",
        "sasl.kerberos.ticket.renew.jitter",
        "sasl.kerberos.ticket.renew.window.factor",
        "sasl.login.refresh.buffer.seconds",
        "sasl.login.refresh.min.period.seconds",
        "sasl.login.refresh.window.factor",
        "sasl.login.refresh.window.jitter",
        "sasl.mechanism.inter.broker.protocol",
        "ssl.endpoint.identification.algorithm",
        "ssl.engine.factory.class",
        "ssl.keymanager.algorithm",
        "ssl.protocol",
        "ssl.provider",
        "ssl.secure.random.implementation",
        "ssl.trustmanager.algorithm",
    ]
)
"""
Options that a running Apache Kafka takes, and that have no effect here.
"""
_OF_ALL_BROKERS: Final = frozenset({"metric.reporters"})
"""Those of them that can be set for all brokers at once."""


class BrokerConfigKind(ConfigKind):
    """
    This broker by its id, and all brokers by an empty name.
    """

    def __init__(
        self,
        configs: BrokerConfigs,
        image: MetadataImage,
        node_id: int,
        security: Security | None = None,
    ) -> None:
        """
        Args:
            security: checks new options of listeners; None if there are no listeners.
        """
        self._security = security
        self._configs = configs
        self._image = image
        self._node_id = node_id

    def knows(self, option: str) -> bool:
        return True

    def is_list(self, option: str) -> bool:
        known = known_option(option)
        return known is not None and known.type is OptionType.LIST

    def default(self, option: str) -> str | None:
        known = known_option(option)
        return None if known is None else known.format(known.default)

    def prepare(self, wanted: AlterResource) -> None:
        if wanted.name:
            self._check_id(wanted.name, "Node id", f"expected {self._node_id}")
        configs: dict[str, str] = {}
        if not wanted.replaces:
            configs |= self._counting(wanted.name)
        for change in wanted.changes:
            self._check_list(change)
            value = changed_value(change, configs, self.is_list, self.default)
            if value is None:
                configs.pop(change.name, None)
            else:
                configs[change.name] = value
        sets_listeners = any(change.name.startswith(LISTENER_PREFIX) for change in wanted.changes)
        self._check_dynamic(configs, per_broker=bool(wanted.name), sets_listeners=sets_listeners)

    def check_exists(self, name: str) -> None:
        if name and int(name) not in self._image.brokers:
            raise BrokerIdNotRegistered(f"No node with id {int(name)} found.")

    def describe(self, name: str) -> Sequence[ConfigEntry]:
        if not name:
            return self._describe_default()
        self._check_id(name, "Broker id", f"expected {self._node_id} or empty string")
        stored = {**self._configs.stored(""), **self._configs.stored(str(self._node_id))}
        kept = [option for option in stored if option not in BrokerConfig.options()]
        entries = [
            ConfigEntry.of(
                option,
                option.format(self._configs.effective(option_name)),
                self._configs.values(option_name),
                read_only=option.update is Update.READ_ONLY,
            )
            for option_name, option in BrokerConfig.options().items()
            if option_name not in OF_THE_AUTHORIZER
            and (not option.internal or option_name in self._configs.static.given)
        ]
        hidden = [
            _unknown_entry([ConfigValue(option, None, ConfigSource.STATIC_BROKER)])
            for option in OF_THE_AUTHORIZER
            if option in self._configs.static.given
        ]
        return [*entries, *hidden, *(self._describe_kept(option) for option in kept)]

    def _describe_default(self) -> Sequence[ConfigEntry]:
        entries = []
        source = ConfigSource.DYNAMIC_DEFAULT_BROKER
        for name, text in self._configs.stored("").items():
            option = known_option(name)
            if option is None:
                entries.append(_unknown_entry([ConfigValue(name, None, source)]))
                continue
            synonyms = [value for value in self._configs.values(name) if value.source is source]
            read_only = option.update is Update.READ_ONLY
            entries.append(ConfigEntry.of(option, text, synonyms, read_only=read_only))
        return entries

    def _describe_kept(self, name: str) -> ConfigEntry:
        """
        A stored option that has no effect here.
        """
        option = known_option(name)
        if option is not None:
            values = self._configs.values(name)
            value = option.format(self._configs.effective(name))
            return ConfigEntry.of(option, value, values)
        levels = (
            (ConfigSource.DYNAMIC_BROKER, self._configs.stored(str(self._node_id))),
            (ConfigSource.DYNAMIC_DEFAULT_BROKER, self._configs.stored("")),
        )
        return _unknown_entry(
            [ConfigValue(name, None, source) for source, given in levels if name in given]
        )

    def _counting(self, name: str) -> Mapping[str, str]:
        stored = self._configs.stored(name)
        of = self._configs.of_this_broker if name else self._configs.of_all_brokers
        return {n: text for n, text in stored.items() if n in of or not _is_kafkas(n)}

    def _check_id(self, name: str, what: str, expected: str) -> None:
        if _NUMBER.fullmatch(name) is None:
            raise InvalidRequest(f"{what} must be an integer, but it is: {name}")
        if int(name) != self._node_id:
            raise InvalidRequest(f"Unexpected broker id, {expected}, but received {name}")

    def _check_list(self, change: ConfigChange) -> None:
        if change.operation not in (ConfigOperation.APPEND, ConfigOperation.SUBTRACT):
            return
        if known_option(change.name) is None and not _is_kafkas(change.name):
            raise InvalidConfig(f"Unknown config name: {change.name}")
        if not self.is_list(change.name):
            verb = ConfigOperation(change.operation).name.lower()
            raise InvalidConfig(f"Config value {verb} is not allowed for config key: {change.name}")

    def _check_dynamic(
        self, configs: Mapping[str, str], *, per_broker: bool, sets_listeners: bool
    ) -> None:
        fixed = [name for name in configs if _is_fixed(name)]
        if fixed:
            raise InvalidRequest(
                f"Cannot update these configs dynamically: [{joined(sorted(fixed), ', ')}]"
            )
        bare = [name for name in configs if name in _PER_LISTENER]
        if bare:
            raise InvalidRequest(
                "These security configs can be dynamically updated only per-listener using the"
                f" listener prefix: [{joined(sorted(bare), ', ')}]"
            )
        of_one = [name for name in configs if _is_of_one_broker(name)]
        if of_one and not per_broker:
            raise InvalidRequest(
                "Cannot update these configs at default cluster level, broker id must be"
                f" specified: [{joined(sorted(of_one), ', ')}]"
            )
        known = {name: text for name, text in configs.items() if known_option(name) is not None}
        try:
            for name, text in known.items():
                option = dynamic_option(name)
                assert option is not None, f"{name} can be changed"
                option.parse(text)
            supposed = self._configs.supposing(known, per_broker=per_broker)
            check_transition(self._configs, supposed)
            texts = self._configs.texts_with(configs, per_broker=per_broker)
            if self._security is not None:
                self._security.check(texts, reads_again=sets_listeners)
            for listener in self._configs.static.client_listeners:
                listener_rate(listener.name, texts, INT_MAX)
                listener_connections(listener.name, texts)
        except ConfigError as error:
            raise InvalidRequest(str(error)) from error


def _unknown_entry(synonyms: Sequence[ConfigValue]) -> ConfigEntry:
    """
    An unknown option, which may be a secret.
    """
    return ConfigEntry(
        name=synonyms[0].name,
        value=None,
        source=synonyms[0].source,
        synonyms=synonyms,
        read_only=True,
        is_sensitive=True,
        documentation=None,
    )


def _is_kafkas(name: str) -> bool:
    """
    Whether Kafka has an option of that name.
    """
    return (
        known_option(name) is not None
        or name in INERT_OPTIONS
        or name in REFUSED_OPTIONS
        or name.startswith(LISTENER_PREFIX)
    )


def _is_of_one_broker(name: str) -> bool:
    """
    Whether an option cannot be set for all brokers at once.
    """
    option = known_option(name)
    if option is not None:
        return option.update is Update.PER_BROKER
    return name in _WITHOUT_EFFECT - _OF_ALL_BROKERS or name.startswith(LISTENER_PREFIX)


def _is_fixed(name: str) -> bool:
    """
    Whether an option is read at the start only, or not at all.
    """
    if name in _PER_LISTENER or name in _WITHOUT_EFFECT or name.startswith(LISTENER_PREFIX):
        return False
    return _is_kafkas(name) and dynamic_option(name) is None
