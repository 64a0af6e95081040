"""
The partition of an internal topic that a group id or a transactional id belongs to.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from functools import lru_cache

from barnabas.server.text_memory import is_short


def partition_of(key: str, partition_count: int) -> int:
    """
    The partition of *key* as Kafka computes it: each broker finds the records of the other.
    """
    return absolute_hash(key) % partition_count


def absolute_hash(text: str) -> int:
    """
    The absolute value of Java's ``String.hashCode``; 0 for -2**31, as Kafka's ``Utils.abs``.
    """
    return _remembered(text) if is_short(text) else _absolute_hash(text)


@lru_cache(maxsize=16_384)
def _remembered(text: str) -> int:
    return _absolute_hash(text)


def _absolute_hash(text: str) -> int:
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for at in range(0, len(units), 2):
        value = (31 * value + (units[at] << 8 | units[at + 1])) & 0xFFFFFFFF
    return min(value, 0x1_0000_0000 - value) & 0x7FFFFFFF
