"""
Segments and the batches to put into them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from barnabas.protocol.records.batch import HEADER_SIZE, build_batch
from barnabas.protocol.records.record import SimpleRecord
from barnabas.storage.fs.interface import Files
from barnabas.storage.index.time_index import TimestampOffset
from barnabas.storage.index.txn_index import AbortedTxn, TransactionIndex
from barnabas.storage.segment.segment import LogSegment
from barnabas.storage.state_files.file_names import transaction_index_file
from barnabas.storage.units import LONG_MAX
from barnabas.testing.disks.memory import MemoryFiles
from tests.support.clock import StillClock

DIRECTORY = Path("/data/t-0")
LOG = DIRECTORY / "00000000000000000000.log"
INDEX = DIRECTORY / "00000000000000000000.index"
TIME_INDEX = DIRECTORY / "00000000000000000000.timeindex"
FIRST_TIMESTAMP = 1_700_000_000_000


@dataclass
class Config:
    """
    What a segment wants to know of a topic's configuration, with Kafka's defaults.
    """

    segment_index_bytes: int = 10 * 1024 * 1024
    index_interval_bytes: int = 4096
    jitter_ms: int = 0

    def random_segment_jitter(self) -> int:
        return self.jitter_ms


@lru_cache(maxsize=1000)
def padded_batch(
    offset: int, *, size: int = 150, timestamp: int | None = None, leader_epoch: int = 0
) -> memoryview:
    """
    A batch of one record that is exactly *size* bytes long.
    """
    timestamp = FIRST_TIMESTAMP + offset if timestamp is None else timestamp
    # Where the length of the value needs one more byte, a size is left out that a key makes up for.
    for key in (None, b"k"):
        for padding in range(max(0, size - 80), size - HEADER_SIZE):
            batch = build_batch(
                [SimpleRecord(timestamp, key, bytes(padding))],
                base_offset=offset,
                partition_leader_epoch=leader_epoch,
            )
            if len(batch) == size:
                return memoryview(bytes(batch))
    raise ValueError(f"no batch has {size} bytes")


def batch_of(offset: int, timestamps: list[int], *, leader_epoch: int = 0) -> memoryview:
    """
    A batch with a record for each of *timestamps*, numbered from *offset* on.
    """
    records = [SimpleRecord(timestamp, b"k", b"v") for timestamp in timestamps]
    return memoryview(build_batch(records, base_offset=offset, partition_leader_epoch=leader_epoch))


def open_segment(
    base_offset: int = 0,
    *,
    files: Files | None = None,
    clock: StillClock | None = None,
    index_bytes: int = 10 * 1024 * 1024,
    interval: int = 4096,
    jitter_ms: int = 0,
    preallocate: int = 0,
    directory: Path = DIRECTORY,
) -> LogSegment:
    """
    A segment, on a disk in memory unless *files* says where.
    """
    files = files or MemoryFiles()
    files.make_directory(directory)
    return LogSegment(
        directory,
        base_offset,
        Config(index_bytes, interval, jitter_ms),
        clock or StillClock(),
        files=files,
        init_file_size=preallocate,
        has_txn_index=files.exists(transaction_index_file(directory, base_offset)),
    )


def append_padded(
    segment: LogSegment, offsets: range, *, size: int = 150, timestamp: int | None = None
) -> None:
    """
    Append a batch of one record for each of *offsets*.
    """
    for offset in offsets:
        segment.append(offset, padded_batch(offset, size=size, timestamp=timestamp))


def offset_entries(segment: LogSegment) -> list[tuple[int, int]]:
    index = segment.offset_index
    return [tuple(index.entry(slot)) for slot in range(index.entries)]  # type: ignore[misc]  # a NamedTuple is the tuple of its fields


def time_entries(segment: LogSegment) -> list[TimestampOffset]:
    index = segment.time_index
    return [index.entry(slot) for slot in range(index.entries)]


def aborted_txns(index: TransactionIndex) -> list[AbortedTxn]:
    """
    All entries of a transaction index.
    """
    return index.collect_aborted_txns(0, LONG_MAX).aborted_transactions
