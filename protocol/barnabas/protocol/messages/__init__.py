"""
The messages of all APIs, one module each.

A module has the name of its API (``apis.py``) and is imported when that is first asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Final

from barnabas.protocol.apis import MODULES
from barnabas.protocol.codec.schema import Message


class Messages(Mapping[int, type[Message]]):
    """
    The requests or the responses, by API key.
    """

    def __init__(self, suffix: str) -> None:
        self._suffix = suffix

    def __getitem__(self, key: int) -> type[Message]:
        module = MODULES[key]
        name = "".join(word.capitalize() for word in module.split("_")) + self._suffix
        found: type[Message] = getattr(import_module(f"{__name__}.{module}"), name)
        return found

    def __iter__(self) -> Iterator[int]:
        return iter(MODULES)

    def __len__(self) -> int:
        return len(MODULES)

    def __contains__(self, key: object) -> bool:
        return key in MODULES


REQUESTS: Final[Mapping[int, type[Message]]] = Messages("Request")
RESPONSES: Final[Mapping[int, type[Message]]] = Messages("Response")
