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


USER: Final = "User"
ANONYMOUS: Final = KafkaPrincipal(USER, "ANONYMOUS")
"""
The principal of a client that has not authenticated itself.
"""
