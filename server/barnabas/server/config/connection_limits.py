"""
The parser of ``max.connections.per.ip.overrides``.
"""

from __future__ import annotations

import re
from typing import Final

from barnabas.storage.config.option_values import InvalidValue

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
