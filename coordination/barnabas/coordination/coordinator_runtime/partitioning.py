"""
The partition of an internal topic that a group id or a transactional id belongs to.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from barnabas.coordination.java_strings import string_hash


def partition_of(key: str, partition_count: int) -> int:
    """
    The partition of *key* as Kafka computes it: each broker finds the records of the other.
    """
    return absolute_hash(key) % partition_count


def absolute_hash(text: str) -> int:
    """
    The absolute value of Java's ``String.hashCode``; 0 for -2**31, as Kafka's ``Utils.abs``.
    """
    value = string_hash(text)
    return min(value, 0x1_0000_0000 - value) & 0x7FFF_FFFF
