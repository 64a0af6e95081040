"""
The messages of all APIs, one module each.

A module is imported when its API is first asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Final

from barnabas.protocol.schema import Message

_MODULES: Final = {
    0: "produce",
    1: "fetch",
    2: "list_offsets",
    3: "metadata",
    8: "offset_commit",
    9: "offset_fetch",
    10: "find_coordinator",
    11: "join_group",
    12: "heartbeat",
    13: "leave_group",
    14: "sync_group",
    15: "describe_groups",
    16: "list_groups",
    18: "api_versions",
    19: "create_topics",
    20: "delete_topics",
    22: "init_producer_id",
    23: "offset_for_leader_epoch",
    32: "describe_configs",
    42: "delete_groups",
    60: "describe_cluster",
}


class Messages(Mapping[int, type[Message]]):
    """
    The requests or the responses, by API key.
    """

    def __init__(self, suffix: str) -> None:
        self._suffix = suffix

    def __getitem__(self, key: int) -> type[Message]:
        module = _MODULES[key]
        name = "".join(word.capitalize() for word in module.split("_")) + self._suffix
        found: type[Message] = getattr(import_module(f"{__name__}.{module}"), name)
        return found

    def __iter__(self) -> Iterator[int]:
        return iter(_MODULES)

    def __len__(self) -> int:
        return len(_MODULES)

    def __contains__(self, key: object) -> bool:
        return key in _MODULES


REQUESTS: Final[Mapping[int, type[Message]]] = Messages("Request")
RESPONSES: Final[Mapping[int, type[Message]]] = Messages("Response")
