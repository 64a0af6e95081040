"""
Which partition of ``__consumer_offsets`` a group belongs to.
"""

from __future__ import annotations

from functools import lru_cache


def partition_of(group_id: str, partition_count: int) -> int:
    """
    The partition by Kafka's reckoning, so that it finds the group in our log and we in its.
    """
    return absolute_hash(group_id) % partition_count


@lru_cache(maxsize=4096)
def absolute_hash(text: str) -> int:
    """
    The absolute value of Java's ``String.hashCode``, with Kafka's idea of that of -2**31: 0.
    """
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    return min(value, 0x1_0000_0000 - value) & 0x7FFFFFFF
