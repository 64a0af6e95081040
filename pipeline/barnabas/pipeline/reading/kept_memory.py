"""
Memory that stays with the process from one chunk to the next.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

_LARGEST_BLOCK: Final = 16 << 20


@lru_cache(maxsize=1)
def keep_memory() -> None:
    """
    Have the C library keep what is freed, up to twice ``_LARGEST_BLOCK``, instead of giving it back
    to the system, which would hand out the same pages again, emptied, for the next chunk.

    glibc decides that by the largest block that was ever freed (``M_MMAP_THRESHOLD`` in
    mallopt(3)): so one is, of which nothing was touched. Who has set a threshold himself keeps it.
    """
    bytes(_LARGEST_BLOCK)
