"""
The order of the keys of Kafka's ``TimelineHashMap``, in which a coordinator keeps members.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from barnabas.coordination.groups.assignors.java_order.hashing import signed
from barnabas.coordination.java_strings import string_hash

_SMALLEST_TABLE: Final = 2
_MULTIPLIER: Final = -7046029254386353131 & 0xFFFF_FFFF_FFFF_FFFF


def timeline_order(keys: Iterable[str], largest: int) -> list[str]:
    """
    The order of an iterator over a ``TimelineHashMap`` with these keys.

    The upper bits of a product of the hash code choose a slot of the table. In a slot the newest
    key comes first. The table doubles when a key is put, new or not, and one more would fill more
    than 4/3 of the slots; it does not shrink.

    Args:
        keys: in the order in which they came.
        largest: the number of keys when there were most of them.
    """
    size = _SMALLEST_TABLE
    while 3 * (largest + 1) > 4 * size:
        size *= 2
    shift = 65 - size.bit_length()
    slots: dict[str, int] = {
        key: (signed(string_hash(key)) * _MULTIPLIER & 0xFFFF_FFFF_FFFF_FFFF) >> shift
        for key in keys
    }
    newest_first = list(reversed(slots))
    return sorted(newest_first, key=slots.__getitem__)
