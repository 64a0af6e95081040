"""
The address that an HTTP server listens on.
"""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import NamedTuple

_ADDRESS = re.compile(r"(?:(?:\[(?P<v6>[^\]]+)\]|(?P<host>[^\[\]:]+)):)?(?P<port>\d{1,5})")


class BadAddress(ValueError):
    """
    A text is no address.
    """


class Address(NamedTuple):
    """
    A host and a port; port 0 is any free one.
    """

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Address:
        """
        Read ``HOST:PORT``, ``[IPV6]:PORT``, or ``PORT`` of 127.0.0.1; ``http://`` may be in front.

        Raises:
            BadAddress: it is none of these.
        """
        match = _ADDRESS.fullmatch(text.removeprefix("http://").removesuffix("/"))
        if match is None or int(match["port"]) > 65535:
            raise BadAddress(f"{text}: an address looks like 127.0.0.1:8099, or 8099 alone")
        return cls(match["v6"] or match["host"] or "127.0.0.1", int(match["port"]))

    @property
    def is_loopback(self) -> bool:
        """
        Whether only this machine reaches it.
        """
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"
