"""
The parser of ``max.connections.per.ip.overrides``, and limits of single listeners.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from barnabas.server.config.security import listener_prefix
from barnabas.storage.config.option_values import InvalidValue
from barnabas.storage.units import INT_MAX

CONNECTIONS: Final = "max.connections"
CREATION_RATE: Final = "max.connection.creation.rate"
_NAME: Final = "max.connections.per.ip.overrides"
_HOST: Final = re.compile(r"[0-9a-zA-Z\-%._:]+")
_COUNT: Final = re.compile(r"\+?[0-9]+", re.ASCII)


def parse_limits(text: str) -> dict[str, int]:
    """
    The most connections of each host, which is a name or an address.

    Raises:
        InvalidValue: the text is not ``HOST:COUNT``, separated by commas.
    """
    limits = {}
    for pair in filter(None, (part.strip() for part in text.split(","))):
        host, _, count = pair.rpartition(":")
        if _HOST.fullmatch(host) is None:
            raise InvalidValue(_NAME, text, f"it contains invalid addresses: {host}")
        if _COUNT.fullmatch(count) is None:
            raise InvalidValue(_NAME, text, f"{count} is not a number of connections")
        limits[host] = int(count)
    return limits


def listener_connections(listener: str, texts: Mapping[str, str | None]) -> int:
    """
    The ``max.connections`` that a *listener* has of its own among *texts*; the largest number if it
    has none.

    Raises:
        InvalidValue: it is no number.
    """
    name = f"{listener_prefix(listener)}{CONNECTIONS}"
    text = texts.get(name)
    if text is None:
        return INT_MAX
    if _COUNT.fullmatch(text.strip()) is None or int(text) > INT_MAX:
        raise InvalidValue(name, text, "it is not a number of connections")
    return int(text)


def listener_rate(listener: str, texts: Mapping[str, str | None], otherwise: int) -> int:
    """
    The ``max.connection.creation.rate`` of a *listener*, if it has one of its own among *texts*.

    Raises:
        InvalidValue: it is no number above 0.
    """
    name = f"{listener_prefix(listener)}{CREATION_RATE}"
    text = texts.get(name)
    if text is None:
        return otherwise
    if _COUNT.fullmatch(text.strip()) is None or not 0 < int(text) <= INT_MAX:
        raise InvalidValue(name, text, "it is not a number of connections above 0")
    return int(text)
