"""
The partition of a key, as Kafka's Java producer chooses it (``BuiltInPartitioner``): murmur2.
"""

from __future__ import annotations

from typing import Final

_SEED: Final = 0x9747B28C
_M: Final = 0x5BD1E995
_MASK: Final = 0xFFFFFFFF


def partition_of_key(key: bytes, partitions: int) -> int:
    """
    The partition of records with *key* in a topic of so many *partitions*.
    """
    return (murmur2(key) & 0x7FFFFFFF) % partitions


def murmur2(data: bytes) -> int:
    """
    The 32-bit murmur2 hash of *data*, with the seed of Kafka's ``Utils.murmur2``.
    """
    size = len(data)
    whole = size & ~3
    h = _SEED ^ size
    for at in range(0, whole, 4):
        k = int.from_bytes(data[at : at + 4], "little") * _M & _MASK
        k = (k ^ (k >> 24)) * _M & _MASK
        h = (h * _M & _MASK) ^ k
    if size > whole:
        h ^= int.from_bytes(data[whole:], "little")
        h = h * _M & _MASK
    h = (h ^ (h >> 13)) * _M & _MASK
    return h ^ (h >> 15)
