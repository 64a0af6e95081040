"""
The latest offset of each key, in memory that does not depend on the length of the keys.

::

    slot    8 bytes  hash of the key, never 0
            8 bytes  hash of one byte more, and the key
            8 bytes  offset
            all zeros: it is free

    probes  the first hash modulo the number of slots; from there on in steps of the second, and
            after some of these from slot to slot

Keys are compared by their hashes alone, and none is ever removed, as in Kafka's SkimpyOffsetMap,
which uses MD5. Here it is Python's hash of bytes twice, 128 bits as well: SipHash with a random
key, unless PYTHONHASHSEED is set, so that no client can construct two keys with the same hashes.
The additional byte is the first one: a collision of one hash then says nothing about the other.

Every step stays within 64 signed bits, so that machine integers and Python's give the same.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.storage.cleaner.offset_set import OffsetSet, zeros

if TYPE_CHECKING:
    from mypy_extensions import i64

BYTES_PER_ENTRY: Final = 24
NOT_FOUND: Final = -1

_WORDS: Final = 3
_SCATTERED_PROBES: Final = 16
"""With nine tenths of the slots taken, one in five searches for an absent key takes more probes."""


class OffsetMap:
    """
    A hash table of a fixed size, from keys to offsets.

    Invariants:

    1. At most ``slots`` keys are in it; it takes 24 bytes a slot and nothing for a key, and an
       eighth of that for offsets that are known to be superseded.
    2. Memory is touched only where there is an entry: an empty map takes none of it.
    3. An offset is superseded only if a later one was put for the same key, and never an earlier
       one after that.

    One thread at a time may use it.
    """

    def __init__(self, memory_bytes: int) -> None:
        """
        Args:
            memory_bytes: for all slots together.

        Raises:
            ValueError: not even one slot fits.
        """
        if memory_bytes < BYTES_PER_ENTRY:
            raise ValueError(f"An offset map of {memory_bytes} bytes has no room for a key.")
        self.slots: i64 = memory_bytes // BYTES_PER_ENTRY
        self.size: i64 = 0
        """The number of keys."""
        self.latest_offset: i64 = -1
        """The keys of all offsets up to here were added."""
        self._last_put: i64 = -1
        self._table = zeros(self.slots * BYTES_PER_ENTRY).cast("q")
        self._superseded: OffsetSet | None = None

    @property
    def utilization(self) -> float:
        """
        The part of the slots that is taken, from 0 to 1.
        """
        return int(self.size) / int(self.slots)

    def put(self, key: bytes, offset: i64) -> None:
        """
        Set the latest offset of *key* to *offset*.

        Raises:
            ValueError: all slots are taken.
        """
        if self.size >= self.slots:
            raise ValueError(
                "Attempted to add a new entry to a full offset map, "
                f"entries: {self.size}, slots: {self.slots}"
            )
        if self.size == 0:
            self._superseded = OffsetSet(offset, self.slots * BYTES_PER_ENTRY)
        elif offset <= self._last_put:
            # The log is damaged. Only a lookup finds the later one of two records.
            self._superseded = None
        self._last_put = offset
        table = self._table
        first = _first_hash(key)
        second: i64 = hash(b"\1" + key)
        at = self._search(first, second)
        if at >= 0:
            if self._superseded is not None:
                before: i64 = table[at + 2]
                self._superseded.add(before)
        else:
            at = ~at
            table[at] = first
            table[at + 1] = second
            self.size += 1
        table[at + 2] = offset
        self.latest_offset = offset

    def get(self, key: bytes) -> i64:
        """
        The latest offset of *key*, or ``NOT_FOUND``.
        """
        second: i64 = hash(b"\1" + key)
        at = self._search(_first_hash(key), second)
        if at < 0:
            return NOT_FOUND
        offset: i64 = self._table[at + 2]
        return offset

    def is_superseded(self, offset: i64) -> bool:
        """
        Whether the key of the record at *offset* is known to have a later one. If not, ``get`` may
        still find one.
        """
        return self._superseded is not None and self._superseded.has(offset)

    def update_latest_offset(self, offset: int) -> None:
        """
        Note that offsets up to *offset* were added, with keys or without.
        """
        self.latest_offset = offset

    def clear(self) -> None:
        """
        Remove all keys, and return the memory to the system.
        """
        self.size = 0
        self.latest_offset = self._last_put = -1
        self._table = zeros(self.slots * BYTES_PER_ENTRY).cast("q")
        self._superseded = None

    def _search(self, first: i64, second: i64) -> i64:
        """
        The position of the slot with these hashes in the table, or ``~`` that of their free slot,
        or ``~`` the end if there is none.
        """
        table = self._table
        slots: i64 = self.slots
        step: i64 = second & 0xFFFFFFFF
        slot: i64 = first % slots
        attempt: i64 = 0
        while attempt < slots + _SCATTERED_PROBES:
            at: i64 = slot * _WORDS
            there: i64 = table[at]
            if there == 0:
                return ~at
            if there == first:
                other: i64 = table[at + 1]
                if other == second:
                    return at
            attempt += 1
            slot = (slot + (step if attempt < _SCATTERED_PROBES else 1)) % slots
        return ~(slots * _WORDS)


def _first_hash(key: bytes) -> i64:
    number: i64 = hash(key)
    return number if number != 0 else 1
