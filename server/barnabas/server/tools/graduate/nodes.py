"""
The nodes of the cluster that a directory is going to be part of.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from barnabas.protocol.structs import NamedTuple
from barnabas.storage.config.option_values import ConfigError

DEFAULT_PORT: Final = 9092
DEFAULT_CONTROLLER_PORT: Final = 9093
MOST_REPLICAS: Final = 3

_NODE: Final = re.compile(
    r"(?:\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?P<host>[^:\s/,]+))"
    r"(?::(?P<port>[0-9]{1,5}))?(?::(?P<controller>[0-9]{1,5}))?"
)


class Node(NamedTuple):
    """
    A node, and the addresses at which clients and the other nodes find it.
    """

    id: int
    host: str
    port: int
    controller_port: int

    @property
    def bootstrap(self) -> str:
        """
        The address for clients.
        """
        return f"{self.url_host}:{self.port}"

    @property
    def controller(self) -> str:
        """
        The address for other nodes.
        """
        return f"{self.url_host}:{self.controller_port}"

    @property
    def url_host(self) -> str:
        """
        The host, in brackets if it is an IPv6 address.
        """
        return f"[{self.host}]" if ":" in self.host else self.host


def parse_nodes(texts: Sequence[str], first_id: int) -> list[Node]:
    """
    The nodes that ``--node`` names; the first one has the directory and keeps its id.

    Raises:
        ConfigError: one is malformed, or two have the same address.
    """
    found: list[Node] = []
    used: set[tuple[str, int]] = set()
    ids = [first_id, *(number for number in range(1, len(texts) + 1) if number != first_id)]
    for text, node_id in zip(texts, ids, strict=False):
        node = _parse(text, node_id)
        for port in (node.port, node.controller_port):
            if (node.host, port) in used:
                raise ConfigError(f"--node {text}: {node.host}:{port} is there twice")
            used.add((node.host, port))
        found.append(node)
    return found


def _parse(text: str, node_id: int) -> Node:
    match = _NODE.fullmatch(text)
    if match is None:
        raise ConfigError(
            f"--node {text}: it must look like kafka1.example, kafka1.example:9092 or"
            " kafka1.example:9092:9093, the second port for controllers"
        )
    port = int(match["port"] or DEFAULT_PORT)
    controller_port = int(match["controller"] or DEFAULT_CONTROLLER_PORT)
    for each in (port, controller_port):
        if not 1 <= each <= 65535:
            raise ConfigError(f"--node {text}: a port is a number from 1 to 65535")
    return Node(node_id, match["v6"] or match["host"], port, controller_port)


def replicas_for(count: int) -> int:
    """
    The replicas of each partition, on *count* nodes.
    """
    return min(MOST_REPLICAS, count)
