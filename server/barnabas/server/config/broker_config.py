"""
The configuration of a broker: one table of options, checked as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Final, Self

from barnabas.coordination.config.coordinators import CoordinationOptions
from barnabas.coordination.config.group_protocols import (
    check_limits,
)
from barnabas.server.config.authorization import AuthorizerOptions
from barnabas.server.config.connection_limits import (
    listener_connections,
    listener_rate,
    parse_limits,
)
from barnabas.server.config.delegation_tokens import DelegationTokenOptions
from barnabas.server.config.listeners import Listener, parse_listeners
from barnabas.server.config.log import CleanerOptions, LogOptions, RecordOptions, TopicOptions
from barnabas.server.config.network import ClusterOptions, NetworkOptions
from barnabas.server.config.own import OwnOptions
from barnabas.server.config.quotas import QuotaOptions
from barnabas.server.config.security import LISTENER_PREFIX, SecurityOptions
from barnabas.storage.config.option_values import InvalidValue
from barnabas.storage.config.options import table
from barnabas.storage.config.paths import why_no_path
from barnabas.storage.units import MiB

_NOT_USED: Final = "-1"
"""The value of an unused ``broker.id``."""


@table
class BrokerConfig(
    ClusterOptions,
    NetworkOptions,
    SecurityOptions,
    AuthorizerOptions,
    DelegationTokenOptions,
    QuotaOptions,
    LogOptions,
    RecordOptions,
    CleanerOptions,
    TopicOptions,
    CoordinationOptions,
    OwnOptions,
):
    """
    All options of the broker.

    Invariants:

    1. Every value is in its option's range, and the values are consistent.
    2. ``given`` has the names that are set, with their text; all others have their default. The
       options of single listeners, ``listener.name....``, are in it alone.
    """

    given: Mapping[str, str] = MappingProxyType({})

    def check(self) -> None:
        self._check_retention()
        if self.group_min_session_timeout_ms > self.group_max_session_timeout_ms:
            raise InvalidValue(
                "group.min.session.timeout.ms",
                self.group_min_session_timeout_ms,
                "Value must not be above group.max.session.timeout.ms"
                f" ({self.group_max_session_timeout_ms})",
            )
        threads = max(1, self.log_cleaner_threads)
        if self.log_cleaner_dedupe_buffer_size // threads <= MiB:
            raise InvalidValue(
                "log.cleaner.dedupe.buffer.size",
                self.log_cleaner_dedupe_buffer_size,
                "Value must be more than 1 MiB for each of log.cleaner.threads",
            )
        self._check_directories()
        limits = parse_limits(self.max_connections_per_ip_overrides)
        for listener in self.client_listeners:
            listener_rate(listener.name, self.given, self.max_connection_creation_rate)
            listener_connections(listener.name, self.given)
        if self.max_connections_per_ip == 0 and not limits:
            raise InvalidValue(
                "max.connections.per.ip",
                0,
                "it can be set to zero only if max.connections.per.ip.overrides is set",
            )
        if 0 < self.queued_max_request_bytes < self.socket_request_max_bytes:
            raise InvalidValue(
                "queued.max.request.bytes",
                self.queued_max_request_bytes,
                "Value must be at least socket.request.max.bytes",
            )
        if "classic" not in self.group_coordinator_rebalance_protocols:
            raise InvalidValue(
                "group.coordinator.rebalance.protocols",
                ",".join(self.group_coordinator_rebalance_protocols),
                "Disabling the 'classic' protocol is not supported",
            )
        self.check_authorizer()
        check_limits(self)
        self.check_share_limits()
        # The first access parses and checks them.
        _ = self.client_listeners

    @classmethod
    def parse(cls, texts: Mapping[str, str | None]) -> Self:
        texts = _with_both_ids(texts)
        config = super().parse(
            {name: text for name, text in texts.items() if not name.startswith(LISTENER_PREFIX)}
        )
        given = {name: text for name, text in texts.items() if text is not None}
        return config.replaced(given=given)

    @cached_property
    def client_listeners(self) -> tuple[Listener, ...]:
        """
        The listeners that clients connect to.
        """
        return parse_listeners(self, self)

    @property
    def log_directories(self) -> tuple[Path, ...]:
        """
        ``log.dirs``, or else ``log.dir``; the first one also holds the metadata log.
        """
        return tuple(Path(name) for name in self.log_dirs or self.log_dir)

    @property
    def metadata_directory(self) -> Path:
        return Path(self.metadata_log_dir) if self.metadata_log_dir else self.log_directories[0]

    def _check_directories(self) -> None:
        for text in (*(self.log_dirs or self.log_dir), self.metadata_log_dir):
            if text and (reason := why_no_path(text)):
                raise InvalidValue("log.dirs", text, reason)
        directories = [directory.resolve() for directory in self.log_directories]
        if len(set(directories)) < len(directories):
            raise InvalidValue(
                "log.dirs", ",".join(self.log_dirs or ()), "a directory is named twice"
            )

    def _check_retention(self) -> None:
        for name in ("log.retention.ms", "log.retention.minutes", "log.retention.hours"):
            value = getattr(self, name.replace(".", "_"))
            if value == 0:
                raise InvalidValue(name, value, "Value must be -1 or at least 1")


def _with_both_ids(texts: Mapping[str, str | None]) -> Mapping[str, str | None]:
    """
    *texts* with both ``node.id`` and ``broker.id`` if one of them is set (Kafka's
    ``AbstractKafkaConfig.populateSynonyms``).
    """
    node, broker = texts.get("node.id"), texts.get("broker.id")
    if broker == _NOT_USED:
        broker = None
    if node is None and broker is None:
        return texts
    return {**texts, "node.id": node or broker, "broker.id": broker or node}
