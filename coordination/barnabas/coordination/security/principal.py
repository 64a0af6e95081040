"""
Who a client is.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class KafkaPrincipal(NamedTuple):
    """
    Who a client is (Kafka ``KafkaPrincipal``).
    """

    type: str
    name: str

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


def parse_principal(text: str) -> KafkaPrincipal:
    """
    The principal that is written as ``type:name``.
    """
    kind, _, name = text.partition(":")
    return KafkaPrincipal(kind, name)


USER: Final = "User"
ANONYMOUS: Final = KafkaPrincipal(USER, "ANONYMOUS")
"""
The principal of a client that has not authenticated itself.
"""
