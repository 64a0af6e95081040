"""
Hash codes of Kafka's ids, and the sizes of the tables of ``java.util.HashMap``.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from typing import Final
from uuid import UUID

DEFAULT_TABLE_SIZE: Final = 16

java_release = 17
"""
The release of the Java that Kafka would run on. The table of a ``HashSet`` that copies 12, 24,
48... elements has half the size since Java 19.
"""

_WORD: Final = 0xFFFF_FFFF


def uuid_hash(value: UUID) -> int:
    """
    ``Uuid.hashCode`` of Kafka as an unsigned number.
    """
    number = value.int
    number ^= number >> 64
    return (number ^ number >> 32) & _WORD


def uuid_rank(value: UUID) -> tuple[int, int]:
    """
    What orders ids as ``Uuid.compareTo`` of Kafka does: two signed numbers of 64 bits.
    """
    high, low = value.int >> 64, value.int & 0xFFFF_FFFF_FFFF_FFFF
    return high - (high >> 63 << 64), low - (low >> 63 << 64)


def spread(hash_code: int) -> int:
    """
    The bits of *hash_code* by which a ``HashMap`` chooses a bin.
    """
    return hash_code ^ hash_code >> 16


def signed(hash_code: int) -> int:
    """
    An unsigned number of 32 bits as Java's ``int``.
    """
    return hash_code - (hash_code >> 31 << 32)


def table_size(capacity: int) -> int:
    """
    The size of the table of ``new HashMap<>(capacity)``: the next power of two.
    """
    return 1 << max(capacity - 1, 0).bit_length()


def presized(count: int) -> int:
    """
    The size of the table of ``new HashMap<>((int) (count / 0.75f + 1))``.
    """
    return table_size(4 * count // 3 + 1)


def presized_by_helper(count: int) -> int:
    """
    The size of the table of ``AssignorHelpers.newHashMap(count)``, which allows for one more.
    """
    return presized(count + 1)


def copied(count: int) -> int:
    """
    The size of the table of ``new HashSet<>(collection)``, with *count* in the collection.
    """
    if java_release < 19:
        return max(presized(count), DEFAULT_TABLE_SIZE)
    return max(table_size(-(-4 * count // 3)), DEFAULT_TABLE_SIZE)


def grown(size: int, count: int) -> int:
    """
    The size that a table of *size* has once *count* were put into it.
    """
    while count > 3 * size // 4:
        size *= 2
    return size
