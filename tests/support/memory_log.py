"""
A log that is a list of batches, for parts of the server that only append and read.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from barnabas.protocol.errors import KafkaError
from barnabas.protocol.record_batch import RecordBatch, assign, batches
from barnabas.storage.append_origin import AppendOrigin

NEVER = 2**63 - 1


class Appended(NamedTuple):
    first_offset: int
    last_offset: int
    valid_bytes: int


class Slice(NamedTuple):
    data: bytes

    def read(self) -> bytes:
        return self.data


class Found(NamedTuple):
    records: Slice | None


@dataclass
class Config:
    flush_messages: int = NEVER
    max_message_bytes: int = 1_048_588


@dataclass
class MemoryLog:
    """
    Takes one batch at a time, from coordinators only.
    """

    config: Config = field(default_factory=Config)
    data: list[bytes] = field(default_factory=list)
    log_start_offset: int = 0
    log_end_offset: int = 0
    high_watermark: int = 0
    recovery_point: int = 0
    append_error: KafkaError | None = None
    reads: int = 0

    @property
    def last_stable_offset(self) -> int:
        return self.high_watermark

    @property
    def batches(self) -> list[RecordBatch]:
        return list(batches(b"".join(self.data)))

    def append_as_leader(
        self, records: memoryview, leader_epoch: int, *, origin: AppendOrigin
    ) -> Appended:
        assert origin is AppendOrigin.COORDINATOR
        if self.append_error is not None:
            raise self.append_error
        (batch,) = batches(records)
        assert batch.is_valid()
        assert batch.size <= self.config.max_message_bytes
        first = self.log_end_offset
        assign(records, 0, first, leader_epoch)
        self.data.append(bytes(records))
        self.log_end_offset = first + batch.record_count
        return Appended(first, self.log_end_offset - 1, len(records))

    def update_high_watermark(self, offset: int) -> None:
        self.high_watermark = offset

    def flush(self) -> None:
        self.recovery_point = self.log_end_offset

    def read(self, offset: int, max_length: int, *_: Any) -> Found:
        self.reads += 1
        found: list[bytes] = []
        size = 0
        for data in self.data:
            (batch,) = batches(data)
            if batch.next_offset > offset and (not found or size + len(data) <= max_length):
                found.append(data)
                size += len(data)
        return Found(Slice(b"".join(found)) if found else None)
