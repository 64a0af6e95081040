"""
The ``.snapshot`` files, which tell what a log knew of its producers (see ``producer_snapshots``).

The engine takes a corrupt snapshot for none, whatever is wrong with it. A dump says what, in the
words of Kafka's ProducerStateManager.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Final

from barnabas.protocol.records.crc32c import crc32c
from barnabas.protocol.structs import NamedTuple
from barnabas.storage.dump.java_text import int32

_VERSION: Final = Struct(">h")
_HEADER: Final = Struct(">hIi")
_ENTRY: Final = Struct(">qhiqiqiq")
_CHECKED_FROM: Final = 6
_LARGEST_INT: Final = 2**31 - 1
CURRENT_VERSION: Final = 1


class CorruptSnapshot(Exception):
    """
    The file is no snapshot.
    """


class Producer(NamedTuple):
    """
    One entry. ``last_offset`` is negative if no batch of the producer is known.
    """

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int
    coordinator_epoch: int
    txn_first_offset: int

    @property
    def has_batch(self) -> bool:
        return self.last_offset >= 0

    @property
    def first_sequence(self) -> int:
        if self.last_sequence < self.offset_delta:
            return int32(_LARGEST_INT - int32(self.offset_delta - self.last_sequence) + 1)
        return int32(self.last_sequence - self.offset_delta)

    @property
    def current_txn_first_offset(self) -> int | None:
        return self.txn_first_offset if self.txn_first_offset >= 0 else None


def read_producers(data: bytes) -> Iterator[Producer]:
    """
    Raises:
        CorruptSnapshot: *data* are no snapshot.
    """
    reason = _flaw(data)
    if reason is not None:
        raise CorruptSnapshot(f"Snapshot failed schema validation: {reason}")
    _version, crc, count = _HEADER.unpack_from(data)
    computed = crc32c(memoryview(data)[_CHECKED_FROM:])
    if crc != computed:
        raise CorruptSnapshot(
            f"Snapshot is corrupt (CRC is no longer valid). Stored crc: {crc}. "
            f"Computed crc: {computed}"
        )
    end = _HEADER.size + count * _ENTRY.size
    return map(Producer._make, _ENTRY.iter_unpack(memoryview(data)[_HEADER.size : end]))


def _flaw(data: bytes) -> str | None:
    """
    Why *data* do not have the form of a snapshot; None if they do.
    """
    if len(data) < _VERSION.size:
        return "null"
    (version,) = _VERSION.unpack_from(data)
    if version != CURRENT_VERSION:
        return f"Snapshot contained an unknown file version {version}"
    if len(data) < _HEADER.size:
        return "null"
    count = _HEADER.unpack_from(data)[2]
    left = len(data) - _HEADER.size
    if count < 0:
        return "non-nullable field producerEntries was serialized as null"
    if count > left:
        return (
            f"Tried to allocate a collection of size {count}, but there are only {left} bytes "
            "remaining."
        )
    return None if count * _ENTRY.size <= left else "null"
