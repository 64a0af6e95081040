"""
The latest offset of each key, in memory that does not depend on how long the keys are.

::

    slot    16 bytes  MD5 of the key
             8 bytes  offset
            all zeros: nobody has it

    probes  the four bytes at 0, 1, 2, ... 12 of the hash, as a number, modulo the number of slots;
            after these the slots that follow the last one

Keys are told apart by their hashes alone, and none is ever removed (Kafka's SkimpyOffsetMap). MD5
is there to spread the keys: nothing depends on its being secure.

This module is compiled when there is a compiler. It keeps within 64 signed bits at every step, so
that it gives the same as machine integers and as Python's.
"""

from __future__ import annotations

import hashlib
import mmap
from functools import partial
from struct import Struct
from typing import TYPE_CHECKING, Any, Final

try:
    # Python's own MD5 takes a third of the time of OpenSSL's for keys of some bytes.
    from _md5 import md5  # type: ignore[import-not-found] # A part of CPython without a stub.
except ImportError:
    md5 = partial(hashlib.md5, usedforsecurity=False)

if TYPE_CHECKING:
    from mypy_extensions import i64

_SLOT: Final = Struct(">16sq")
BYTES_PER_ENTRY: Final = _SLOT.size
NOT_FOUND: Final = -1

_NO_HASH: Final = bytes(16)
_LAST_HASH_PROBE: Final = 12
"""The last place in a hash that four bytes can be read from."""


class OffsetMap:
    """
    A hash table of a fixed size, from keys to offsets.

    Invariants:

    1. At most ``slots`` keys are in it; it takes 24 bytes a slot and nothing for a key.
    2. Memory is touched only where there is an entry: an empty map takes none of it.

    One thread at a time may use it.
    """

    def __init__(self, memory_bytes: int) -> None:
        """
        Args:
            memory_bytes: what all slots together may take.

        Raises:
            ValueError: not even one slot fits.
        """
        if memory_bytes < BYTES_PER_ENTRY:
            raise ValueError(f"An offset map of {memory_bytes} bytes has no room for a key.")
        self.slots: i64 = memory_bytes // BYTES_PER_ENTRY
        self.size: i64 = 0
        """Keys that are in it."""
        self.latest_offset: i64 = -1
        """Up to here, offsets have been taken in."""
        self._table = _zeros(self.slots * BYTES_PER_ENTRY)
        self._md5: Any = md5
        self._look: Any = _SLOT.unpack_from
        self._write: Any = _SLOT.pack_into

    @property
    def utilization(self) -> float:
        """
        Which part of the slots is taken, from 0 to 1.
        """
        return int(self.size) / int(self.slots)

    def put(self, key: bytes, offset: i64) -> None:
        """
        *offset* is the latest of *key*.

        Raises:
            ValueError: all slots are taken.
        """
        if self.size >= self.slots:
            raise ValueError(
                "Attempted to add a new entry to a full offset map, "
                f"entries: {self.size}, slots: {self.slots}"
            )
        digest: bytes = self._md5(key).digest()
        place, found = self._search(digest)
        if found == NOT_FOUND:
            self.size += 1
        self._write(self._table, place, digest, offset)
        self.latest_offset = offset

    def get(self, key: bytes) -> i64:
        """
        The latest offset of *key*, or ``NOT_FOUND``.
        """
        digest: bytes = self._md5(key).digest()
        _, offset = self._search(digest)
        return offset

    def update_latest_offset(self, offset: int) -> None:
        """
        Offsets up to *offset* have been taken in, whether they had keys or not.
        """
        self.latest_offset = offset

    def clear(self) -> None:
        """
        Forget everything, and give the memory that was touched back to the system.
        """
        self.size = 0
        self.latest_offset = -1
        self._table.close()
        self._table = _zeros(self.slots * BYTES_PER_ENTRY)

    def _search(self, digest: bytes) -> tuple[i64, i64]:
        """
        Where the slot of *digest* is, or the one that it would get, and the offset there.

        In a full map that does not have it, there is no place, which is then -1.
        """
        table = self._table
        look = self._look
        attempt: i64 = 0
        attempts: i64 = self.slots + _LAST_HASH_PROBE
        while attempt < attempts:
            place = self._place(digest, attempt)
            slot = look(table, place)
            there: bytes = slot[0]
            offset: i64 = slot[1]
            if there == digest:
                return place, offset
            if offset == 0 and there == _NO_HASH:
                return place, NOT_FOUND
            attempt += 1
        return -1, NOT_FOUND

    def _place(self, digest: bytes, attempt: i64) -> i64:
        at: i64 = attempt if attempt < _LAST_HASH_PROBE else _LAST_HASH_PROBE
        high: i64 = digest[at] << 8 | digest[at + 1]
        low: i64 = digest[at + 2] << 8 | digest[at + 3]
        # The sum wraps around at 32 bits, as Java's does.
        probe: i64 = ((high << 16 | low) + attempt - at) & 0xFFFFFFFF
        if probe == 0x80000000:
            probe = 0
        elif probe > 0x80000000:
            probe = 0x100000000 - probe
        return probe % self.slots * BYTES_PER_ENTRY


def _zeros(size: int) -> mmap.mmap:
    """
    Memory that the system provides page by page when it is written to; a bytearray is written to
    from end to end when it is made.
    """
    return mmap.mmap(-1, size, access=mmap.ACCESS_COPY)
