"""
UUIDs as they arrive: requests name a few topics again and again.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING
from uuid import UUID


class WireUuid(UUID):
    """
    A UUID that keeps its bytes; ``UUID`` computes them each time.
    """

    __slots__ = ("bytes",)

    if TYPE_CHECKING:
        bytes: bytes

    def __repr__(self) -> str:
        return f"UUID({str(self)!r})"


@lru_cache(maxsize=4096)
def uuid_from(data: bytes) -> UUID:
    """
    The UUID of 16 bytes.
    """
    uuid = WireUuid(bytes=data)
    object.__setattr__(uuid, "bytes", data)
    return uuid
