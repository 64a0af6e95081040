"""
The partitions of rows, as Kafka's Java producer chooses them (``BuiltInPartitioner``): by the hash
of the key; rows without a key go to one partition after the other, a batch to each.
"""

from __future__ import annotations

import random
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from barnabas.pipeline.writing.rows import lengths_of
from barnabas.pipeline.writing.varints import Ints

_SEED: Final = np.uint32(0x9747B28C)
_M: Final = np.uint32(0x5BD1E995)


def murmur2(keys: pa.Array) -> npt.NDArray[np.uint32]:
    """
    The 32-bit murmur2 hash of each key, with the seed of Kafka's ``Utils.murmur2``.
    """
    lengths = lengths_of(keys)
    edges = np.frombuffer(keys.buffers()[1], np.int32)
    starts = edges[keys.offset : keys.offset + len(keys)].astype(np.int64)
    content = keys.buffers()[2]
    data = np.zeros(0, np.uint8) if content is None else np.frombuffer(content, np.uint8)
    hashes = _SEED ^ lengths.astype(np.uint32)
    words = lengths >> 2
    for word in range(int(words.max(initial=0))):
        live = np.flatnonzero(words > word)
        at = starts[live] + 4 * word
        k = np.zeros(len(live), np.uint32)
        for place in range(4):
            k |= data[at + place].astype(np.uint32) << np.uint32(8 * place)
        k *= _M
        k ^= k >> np.uint32(24)
        k *= _M
        hashes[live] = (hashes[live] * _M) ^ k
    rest = lengths & 3
    for place in (2, 1, 0):
        live = np.flatnonzero(rest > place)
        byte = data[starts[live] + 4 * words[live] + place].astype(np.uint32)
        hashes[live] ^= byte << np.uint32(8 * place)
    live = np.flatnonzero(rest)
    hashes[live] *= _M
    hashes ^= hashes >> np.uint32(13)
    hashes *= _M
    hashes ^= hashes >> np.uint32(15)
    return hashes


class Rotation:
    """
    The partitions of one topic for rows without a key, taken in turn.
    """

    def __init__(self) -> None:
        self._next = random.randrange(1 << 30)

    def take(self, sizes: Ints, batch_bytes: int, partitions: int) -> Ints:
        """
        The partition of each row: as many bytes as a batch has go to one before the next.
        """
        bins = (np.cumsum(sizes) - sizes) // max(1, batch_bytes // 2)
        chosen: Ints = (self._next + bins) % partitions
        self._next += int(bins[-1]) + 1 if len(bins) else 0
        return chosen


def by_key(keys: pa.Array, partitions: int) -> Ints:
    """
    The partition of each key.
    """
    chosen: Ints = (murmur2(keys) & np.uint32(0x7FFFFFFF)).astype(np.int64) % partitions
    return chosen
