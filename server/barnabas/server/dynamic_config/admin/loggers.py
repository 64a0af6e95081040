"""
The loggers of this process, whose levels can be changed while it runs (KIP-412).

The levels and the name ``root`` are Kafka's, which has them from Log4j. Changes are not stored: the
next start has ``barnabas.log.level`` again.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from typing import Final

from barnabas.protocol.errors import InvalidConfig, InvalidRequest
from barnabas.server.dynamic_config.admin.changes import (
    AlterResource,
    ConfigChange,
    ConfigOperation,
)
from barnabas.server.dynamic_config.admin.entries import ConfigEntry
from barnabas.server.dynamic_config.brokers import ConfigSource

logger = logging.getLogger(__name__)

ROOT: Final = "root"
TRACE: Final = 5
"""
A level below DEBUG, which Python has no name for.
"""

_LEVELS: Final = {
    "FATAL": logging.CRITICAL,
    "ERROR": logging.ERROR,
    "WARN": logging.WARNING,
    "INFO": logging.INFO,
    "DEBUG": logging.DEBUG,
    "TRACE": TRACE,
}
_NUMBER: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)


class BrokerLoggers:
    """
    The loggers of the broker with that id.
    """

    def __init__(self, node_id: int) -> None:
        self._node_id = node_id

    def describe(self, name: str) -> Sequence[ConfigEntry]:
        """
        Every logger with its effective level.

        Raises:
            InvalidRequest: *name* is not the id of this broker.
        """
        if not name:
            raise InvalidRequest("Broker id must not be empty")
        if _NUMBER.fullmatch(name) is None:
            raise InvalidRequest(f"Broker id must be an integer, but it is: {name}")
        if int(name) != self._node_id:
            raise InvalidRequest(
                f"Unexpected broker id, expected {self._node_id} but received {name}"
            )
        return [
            ConfigEntry(
                name=logger_name,
                value=_level_name(logging.getLogger(_pythons(logger_name)).getEffectiveLevel()),
                source=ConfigSource.DYNAMIC_BROKER_LOGGER,
            )
            for logger_name in _names()
        ]

    def alter(self, wanted: AlterResource, *, validate_only: bool) -> None:
        """
        Change all levels or, if a change is invalid, none.

        Raises:
            InvalidRequest, InvalidConfig: the broker, a logger, a level or an operation is unknown.
        """
        if _NUMBER.fullmatch(wanted.name) is None:
            raise InvalidRequest(f"Node id must be an integer, but it is: {wanted.name}")
        if int(wanted.name) != self._node_id:
            raise InvalidRequest(
                f"Unexpected node id. Expected {self._node_id}, but received {int(wanted.name)}"
            )
        known = _names()
        for change in wanted.changes:
            _check(change, known)
        if validate_only:
            return
        for change in wanted.changes:
            level = logging.NOTSET if change.value is None else _LEVELS.get(change.value)
            if change.operation == ConfigOperation.DELETE or level is None:
                level = logging.NOTSET
            logging.getLogger(_pythons(change.name)).setLevel(level)
            logger.warning("The log level of %s is %s now", change.name, _level_name(level))


def _check(change: ConfigChange, known: Sequence[str]) -> None:
    operation = ConfigOperation(change.operation)
    if operation in (ConfigOperation.APPEND, ConfigOperation.SUBTRACT):
        raise InvalidRequest(
            f"{operation.name} operation is not allowed for the BROKER_LOGGER resource"
        )
    if change.name not in known:
        raise InvalidConfig(f"Logger {change.name} does not exist!")
    if operation is ConfigOperation.DELETE and change.name == ROOT:
        raise InvalidRequest(f"Removing the log level of the {ROOT} logger is not allowed")
    if operation is ConfigOperation.SET and change.value not in _LEVELS:
        raise InvalidConfig(
            f"Cannot set the log level of {change.name} to {change.value} as it is not a supported"
            f" log level. Valid log levels are {', '.join(sorted(_LEVELS))}"
        )


def _names() -> list[str]:
    loggers = logging.root.manager.loggerDict.items()
    # A name that is only a prefix of others has a placeholder.
    return [ROOT, *sorted(name for name, it in loggers if isinstance(it, logging.Logger))]


def _pythons(name: str) -> str | None:
    return None if name == ROOT else name


def _level_name(level: int) -> str:
    if level == logging.NOTSET:
        return "ALL"
    return next((name for name, least in _LEVELS.items() if level >= least), "TRACE")
