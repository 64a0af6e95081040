"""
Batches told in words: what to put in, and what to spoil.

A batch is made on the spot from its recipe, so that a list of steps shows what was sent without
showing its bytes, and both brokers get the same.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from struct import pack_into
from typing import Final, NamedTuple

from crc32c import crc32c

from barnabas.protocol.compression import CompressionType
from barnabas.protocol.records.batch import build_batch
from barnabas.protocol.records.record import Header, SimpleRecord

ATTRIBUTES_AT: Final = 21
LENGTH_AT: Final = 8
CRC_AT: Final = 17
PAYLOAD_AT: Final = 61

HEADER_FIELDS: Final = {
    "base_offset": (0, "q"),
    "batch_length": (8, "i"),
    "partition_leader_epoch": (12, "i"),
    "magic": (16, "b"),
    "crc": (17, "I"),
    "attributes": (21, "h"),
    "last_offset_delta": (23, "i"),
    "base_timestamp": (27, "q"),
    "max_timestamp": (35, "q"),
    "producer_id": (43, "q"),
    "producer_epoch": (51, "h"),
    "base_sequence": (53, "i"),
    "record_count": (57, "i"),
}
"""Where each field of a batch header is, and its letter in the format of ``struct``."""


class Producer(NamedTuple):
    """
    Whose batch it is, and the sequence of its first record.
    """

    id: int
    epoch: int
    sequence: int


@dataclass(frozen=True, slots=True)
class HeaderField:
    name: str
    value: int

    def apply(self, data: bytearray) -> None:
        position, letter = HEADER_FIELDS[self.name]
        if len(data) >= PAYLOAD_AT:
            pack_into(f">{letter}", data, position, self.value)

    def __str__(self) -> str:
        return f"{self.name}={self.value}"


@dataclass(frozen=True, slots=True)
class Splice:
    """
    Replace *removed* bytes at a position, counted from the start of the records, by others.
    """

    position: int
    removed: int
    inserted: bytes

    def apply(self, data: bytearray) -> None:
        start = min(PAYLOAD_AT + self.position, len(data))
        data[start : start + self.removed] = self.inserted
        if len(data) >= PAYLOAD_AT:
            pack_into(">i", data, LENGTH_AT, len(data) - LENGTH_AT - 4)

    def __str__(self) -> str:
        return f"records[{self.position}:+{self.removed}]={self.inserted.hex() or 'nothing'}"


@dataclass(frozen=True, slots=True)
class Cut:
    """
    Drop so many bytes of the end, and leave the length field as it was.
    """

    count: int

    def apply(self, data: bytearray) -> None:
        del data[max(len(data) - self.count, 0) :]

    def __str__(self) -> str:
        return f"last {self.count} bytes missing"


@dataclass(frozen=True, slots=True)
class Extra:
    """
    Add bytes behind the batch.
    """

    data: bytes

    def apply(self, data: bytearray) -> None:
        data += self.data

    def __str__(self) -> str:
        return f"followed by {self.data.hex()}"


Change = HeaderField | Splice | Cut | Extra


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """
    One record batch.

    Args:
        times: the timestamp of each record, in ms.
        value_bytes: how long each value is; values are half repetitive, half noise.
        keys: each record has one of so many keys; 0 for none.
        tombstones: of which fraction of the records the value is null.
        seed: what keys and values are drawn from.
        changes: done in this order once the batch is ready.
        sealed: whether the checksum is made right again after the changes.
    """

    times: tuple[int, ...]
    value_bytes: int = 60
    keys: int = 0
    tombstones: float = 0.0
    headers: int = 0
    codec: CompressionType = CompressionType.NONE
    level: int | None = None
    producer: Producer | None = None
    transactional: bool = False
    seed: int = 0
    changes: tuple[Change, ...] = ()
    sealed: bool = True

    def build(self) -> bytes:
        producer = self.producer or Producer(-1, -1, -1)
        data = build_batch(
            self.records(),
            compression=self.codec,
            compression_level=self.level,
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            base_sequence=producer.sequence,
            is_transactional=self.transactional,
        )
        for change in self.changes:
            change.apply(data)
        if self.changes and self.sealed and len(data) >= PAYLOAD_AT:
            pack_into(">I", data, CRC_AT, crc32c(memoryview(data)[ATTRIBUTES_AT:]))
        return bytes(data)

    def records(self) -> list[SimpleRecord]:
        chance = random.Random(self.seed)
        return [
            SimpleRecord(time, self._key(chance), self._value(chance), self._headers(chance))
            for time in self.times
        ]

    def _key(self, chance: random.Random) -> bytes | None:
        return b"key-%d" % chance.randrange(self.keys) if self.keys else None

    def _value(self, chance: random.Random) -> bytes | None:
        if chance.random() < self.tombstones:
            return None
        noise = chance.randbytes(self.value_bytes // 2)
        return (noise + b"barnabas " * (self.value_bytes // 9 + 1))[: self.value_bytes]

    def _headers(self, chance: random.Random) -> tuple[Header, ...]:
        return tuple(
            Header(f"h{n}", chance.choice((None, b"", b"value"))) for n in range(self.headers)
        )

    def __str__(self) -> str:
        parts = [f"{len(self.times)} x {self.value_bytes} bytes at {_times(self.times)}"]
        if self.keys:
            parts.append(f"of {self.keys} keys, {self.tombstones:.0%} tombstones")
        if self.codec:
            parts.append(self.codec.name.lower())
        if self.producer:
            parts.append("producer {} epoch {} sequence {}".format(*self.producer))
        if self.transactional:
            parts.append("transactional")
        parts += [str(change) for change in self.changes]
        if self.changes and not self.sealed:
            parts.append("crc left")
        return ", ".join(parts)


def _times(times: Sequence[int]) -> str:
    if len(set(times)) == 1:
        return str(times[0])
    return f"{times[0]}..{times[-1]} (largest {max(times)})"
