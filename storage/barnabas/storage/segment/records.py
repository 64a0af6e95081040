"""
Batches in a file, one after the other.

A file is walked by reading chunks of it and looking at the headers that they hold, so that finding
one batch among many small ones takes one system call and not one for each (Kafka's FileRecords and
FileLogInputStream read them one by one, with the same results). Among large ones, headers are
all that is read.

The walk ends without an error where the rest is too short for a batch, or shorter than the length
in the header of the next batch. Only a length that no batch can have is an error.

Segments of before Apache Kafka 0.11 have messages of older formats, which count as batches.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from struct import Struct
from typing import Final, NamedTuple

from barnabas.protocol.codec.primitives import Buffer
from barnabas.protocol.records.batch import (
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_AT,
    MAGIC_END,
    NO_PARTITION_LEADER_EPOCH,
    NO_TIMESTAMP,
    SMALLEST_LENGTH,
    RecordBatch,
    read_batch,
    read_legacy_batch,
)
from barnabas.protocol.records.outline import RecordOutline
from barnabas.storage.errors import CorruptRecord, KafkaError
from barnabas.storage.fs.interface import Files
from barnabas.storage.fs.open_file import OpenFile
from barnabas.storage.segment.fetch_data import FileSlice
from barnabas.storage.units import INT_MAX

LARGEST_FILE: Final = INT_MAX
"""The largest position in an offset index."""

SCAN: Final = Struct(">qiib6xi8xq")
"""
The fields of a header that place the batch: base offset, length, leader epoch, magic, last offset
delta, max timestamp.
"""
_SEARCH_CHUNK: Final = 8 * 1024
"""More than ``index.interval.bytes`` (4096 by default): behind an index entry one read suffices."""
_READ_CHUNK: Final = 256 * 1024
"""Large enough that system calls do not count when a log is recovered; not measured further."""


class BatchHeader(NamedTuple):
    """
    The fields of a header that place the batch, and its position and size in the file, in bytes.
    """

    base_offset: int
    last_offset: int
    leader_epoch: int
    max_timestamp: int
    position: int
    size: int


class LogOffsetPosition(NamedTuple):
    """
    The batch that holds an offset: its first offset, its position and its size in bytes.
    """

    offset: int
    position: int
    size: int


class TimestampAndOffset(NamedTuple):
    """
    A record that a search by time has found, or the largest timestamp and its batch's last offset.
    """

    timestamp: int
    offset: int
    leader_epoch: int | None


class FileRecords:
    """
    A file of batches.

    Invariants:

    1. The next append is written at ``size``. The file may be longer: by preallocated zeros, or by
       the rest of an append that failed.
    2. Bytes below ``size`` do not change until they are truncated away.

    Reading is safe from any thread. One thread at a time may change the file; the log that owns the
    segment holds its lock.
    """

    __slots__ = ("_open", "size")

    def __init__(self, file: OpenFile, size: int) -> None:
        self._open = file
        self.size = size
        """Bytes of the batches."""

    @classmethod
    def open(
        cls,
        files: Files,
        path: Path,
        *,
        mutable: bool = True,
        file_already_exists: bool = False,
        init_file_size: int = 0,
    ) -> FileRecords:
        """
        Args:
            init_file_size: bytes that are preallocated for a new file; 0 for none.

        Raises:
            FileNotFoundError: there is no file, and it is not to be changed.
            KafkaError: the file is larger than positions in an index can be.
        """
        file = OpenFile(files, path, create=mutable, read_only=not mutable)
        if mutable and init_file_size and not file_already_exists:
            file.get().truncate(init_file_size)
            return cls(file, 0)
        size = file.size_at_first()
        if size > LARGEST_FILE:
            raise KafkaError(
                f"The size of segment {path} ({size}) is larger than the maximum allowed segment "
                f"size of {LARGEST_FILE}"
            )
        return cls(file, size)

    @property
    def path(self) -> Path:
        return self._open.path

    def append(self, records: Buffer) -> None:
        """
        Write whole batches behind the last one.

        Raises:
            ValueError: positions in an index cannot be that large.
        """
        size = self.size
        end = size + len(records)
        if end > LARGEST_FILE:
            raise ValueError(
                f"Append of size {len(records)} bytes is too large for segment with current file "
                f"position at {size}"
            )
        self._open.get().write_at(size, records)
        self.size = end

    def slice(self, position: int, size: int) -> FileSlice:
        """
        Up to *size* bytes from *position* on, to be read later.

        Raises:
            ValueError: *position* is not in the file, or *size* is negative.
        """
        available = self.size - position
        if position < 0 or available < 0:
            raise ValueError(f"Slice from position {position} exceeds end position of {self}")
        if size < 0:
            raise ValueError(f"Invalid size: {size} in read from {self}")
        return FileSlice(self._open.get(), position, min(size, available))

    # Walking along the file.

    def search_for_offset_from_position(
        self, target_offset: int, position: int, *, nowait: bool = False
    ) -> LogOffsetPosition | None:
        """
        The first batch from *position* on that holds *target_offset* or a larger one.

        Raises:
            CorruptRecord: there is no batch where one should begin.
            WouldBlock: with *nowait*, the page cache lacks bytes that are searched.
        """
        end = self.size
        unpack = SCAN.unpack_from
        chunk: bytes | bytearray = b""
        chunk_at, scannable = position, -1
        while position < end - MAGIC_END:
            at = position - chunk_at
            if at > scannable:
                chunk = self._chunk(position, at - len(chunk), nowait)
                chunk_at, at, scannable = position, 0, len(chunk) - SCAN.size
            base_offset, length, _, magic, delta, _ = unpack(chunk, at)
            if length >= SMALLEST_LENGTH and length > end - LOG_OVERHEAD - position:
                return None
            if length < SMALLEST_LENGTH or magic < 0:
                raise self._corrupt(position, length, magic)
            if magic < MAGIC:
                # The offset in front of an old message is that of the last record in it.
                if base_offset >= target_offset:
                    return self._legacy_place(position, length + LOG_OVERHEAD, nowait)
            elif base_offset + delta >= target_offset or base_offset >= target_offset:
                return LogOffsetPosition(base_offset, position, length + LOG_OVERHEAD)
            position += length + LOG_OVERHEAD
        return None

    def _legacy_place(self, position: int, size: int, nowait: bool) -> LogOffsetPosition:
        batch = self._legacy_batch(position, size, nowait)
        return LogOffsetPosition(batch.base_offset, position, size)

    def _legacy_batch(self, position: int, size: int, nowait: bool = False) -> RecordBatch:
        return read_legacy_batch(memoryview(self._open.get().read(position, size, nowait=nowait)))

    def headers(self, position: int = 0) -> Iterator[BatchHeader]:
        """
        The headers of the batches from *position* on.

        Raises:
            CorruptRecord: there is no batch where one should begin.
        """
        end = self.size
        chunk: bytes | bytearray = b""
        chunk_at, scannable = position, -1
        while position < end - MAGIC_END:
            at = position - chunk_at
            if at > scannable:
                chunk = self._chunk(position, at - len(chunk), nowait=False)
                chunk_at, at, scannable = position, 0, len(chunk) - SCAN.size
            base_offset, length, epoch, magic, delta, timestamp = SCAN.unpack_from(chunk, at)
            size = length + LOG_OVERHEAD
            if length >= SMALLEST_LENGTH and size > end - position:
                return
            if length < SMALLEST_LENGTH or magic < 0:
                raise self._corrupt(position, length, magic)
            if magic < MAGIC:
                yield _legacy_header(self._legacy_batch(position, size), position)
            else:
                last_offset = base_offset + delta
                yield BatchHeader(base_offset, last_offset, epoch, timestamp, position, size)
            position += size

    def _chunk(self, position: int, left_out: int, nowait: bool) -> bytes | bytearray:
        """
        The bytes from *position* on, with at least one header. Where bytes are *left_out* between
        the last chunk and this one, batches are larger than chunks: then no more than that.
        """
        size = SCAN.size if left_out > 0 else _SEARCH_CHUNK
        chunk = self._open.get().read(position, size, nowait=nowait)
        # A message of an old format may end before the fields of a batch: zeros stand in for them,
        # which are not read.
        return chunk if len(chunk) >= SCAN.size else chunk.ljust(SCAN.size, b"\0")

    def batches(self, position: int = 0) -> Iterator[RecordBatch]:
        """
        Whole batches, from *position* on. Their checksums are not looked at.

        Raises:
            CorruptRecord: there is no batch where one should begin, or one is shorter than its
                own header.
        """
        end = self.size
        chunk, chunk_at = memoryview(b""), position
        while position < end - MAGIC_END:
            at = position - chunk_at
            if at + HEADER_SIZE > len(chunk):
                chunk, chunk_at, at = self._long_chunk(position, _READ_CHUNK), position, 0
            _, length, _, magic, _, _ = SCAN.unpack_from(chunk, at)
            size = length + LOG_OVERHEAD
            if length >= SMALLEST_LENGTH and size > end - position:
                return
            if length < SMALLEST_LENGTH or magic < 0:
                raise self._corrupt(position, length, magic)
            if size < HEADER_SIZE and magic >= MAGIC:
                raise CorruptRecord(
                    f"Record batch is corrupt (the size {size} is smaller than the minimum allowed "
                    f"overhead {HEADER_SIZE})",
                    path=self.path,
                    position=position,
                )
            if at + size > len(chunk):
                chunk, chunk_at = self._long_chunk(position, max(size, _READ_CHUNK)), position
                at = 0
            yield _batch(chunk, at, magic)
            position += size

    def _long_chunk(self, position: int, size: int) -> memoryview:
        data = self._open.get().read(position, min(size, self.size - position))
        return memoryview(
            data if len(data) >= HEADER_SIZE else bytes(data).ljust(HEADER_SIZE, b"\0")
        )

    def batch_at(self, header: BatchHeader) -> RecordBatch:
        """
        All of the batch that *header* places.
        """
        data = memoryview(self._open.get().read(header.position, header.size))
        return _batch(data, 0, data[MAGIC_AT])

    def outlines_at(self, header: BatchHeader) -> Iterator[RecordOutline]:
        """
        The outlines of the batch that *header* places (``RecordBatch.outlines``). A large one is
        read in pieces unless it is compressed.
        """
        if header.size > _READ_CHUNK:
            head = self._open.get().read(header.position, HEADER_SIZE)
            if head[MAGIC_AT] == MAGIC:
                batch = read_batch(memoryview(head))
                if not batch.codec and batch.record_count:
                    end = header.position + header.size
                    return batch.outlines_of(self._pieces(header.position + HEADER_SIZE, end))
        return self.batch_at(header).outlines()

    def _pieces(self, position: int, end: int) -> Iterator[bytes]:
        while position < end:
            piece = self._open.get().read(position, min(_READ_CHUNK, end - position))
            if not piece:  # It was truncated meanwhile.
                return
            position += len(piece)
            yield bytes(piece)

    def _corrupt(self, position: int, length: int, magic: int) -> CorruptRecord:
        if length < SMALLEST_LENGTH:
            sentence = (
                f"Found record size {length} smaller than minimum record overhead "
                f"({SMALLEST_LENGTH}) in file {self.path}."
            )
        else:
            sentence = (
                f"Found a batch of format version {magic} at byte {position} of {self.path}, "
                "which does not exist."
            )
        return CorruptRecord(sentence, path=self.path, position=position)

    def search_for_timestamp(
        self, target_timestamp: int, position: int, starting_offset: int
    ) -> TimestampAndOffset | None:
        """
        The first record from *position* on that is not older than *target_timestamp* (ms), and
        whose offset is not below *starting_offset*.
        """
        for header in self.headers(position):
            if header.max_timestamp < target_timestamp:
                continue
            for record in self.outlines_at(header):
                if record.timestamp >= target_timestamp and record.offset >= starting_offset:
                    epoch = _maybe_epoch(header.leader_epoch)
                    return TimestampAndOffset(record.timestamp, record.offset, epoch)
        return None

    def largest_timestamp_after(self, position: int) -> TimestampAndOffset:
        """
        The largest timestamp from *position* on with the last offset of the earliest batch that
        has it; -1 for both if no batch has a timestamp.
        """
        largest = TimestampAndOffset(NO_TIMESTAMP, -1, None)
        for header in self.headers(position):
            if header.max_timestamp > largest.timestamp:
                epoch = _maybe_epoch(header.leader_epoch)
                largest = TimestampAndOffset(header.max_timestamp, header.last_offset, epoch)
        return largest

    # The file as a whole.

    def flush(self) -> None:
        """
        Return once all batches survive a crash of the machine. Safe from any thread.
        """
        self._open.get().sync()

    def rewrite_lost(self) -> int:
        """
        Write again what the page cache has and the disk lacks; return the number of bytes.
        """
        return self._open.get().rewrite_lost()

    def truncate_to(self, size: int) -> int:
        """
        Cut the file after *size* bytes; return how many bytes of batches were removed.

        Raises:
            ValueError: the batches are not that long.
        """
        if not 0 <= size <= self.size:
            raise ValueError(
                f"Attempt to truncate log segment {self.path} to {size} bytes failed, size of "
                f"this log segment is {self.size} bytes."
            )
        cut = self.size - size
        if size < self._open.get().size():
            self._open.get().truncate(size)
            self.size = size
        return cut

    def trim(self) -> None:
        """
        Cut off preallocated zeros.
        """
        self.truncate_to(self.size)

    def rename_to(self, path: Path) -> None:
        self._open.rename_to(path)

    def update_parent_dir(self, directory: Path) -> None:
        """
        Follow the directory, which was renamed.
        """
        self._open.set_path(directory / self.path.name)

    def delete_if_exists(self) -> bool:
        """
        Remove the file; return whether there was one.

        It is closed when the last slice of it is freed, so that reads which have begun can end.
        """
        return self._open.delete_if_exists()

    def close(self) -> None:
        """
        Flush, trim and close.
        """
        self.flush()
        self.trim()
        self._open.close()

    def close_handlers(self) -> None:
        """
        Close without writing, as the disk has failed.
        """
        self._open.close()

    def __repr__(self) -> str:
        return f"<FileRecords {self.path} size={self.size}>"


def _batch(view: memoryview, position: int, magic: int) -> RecordBatch:
    """
    The whole batch at *position*. A later format is taken for the current one, as in Kafka.
    """
    if magic < MAGIC:
        return read_legacy_batch(view, position)
    return RecordBatch._make((*HEADER.unpack_from(view, position), view, position))


def _legacy_header(batch: RecordBatch, position: int) -> BatchHeader:
    return BatchHeader(
        batch.base_offset,
        batch.last_offset,
        batch.partition_leader_epoch,
        batch.max_timestamp,
        position,
        batch.size,
    )


def _maybe_epoch(epoch: int) -> int | None:
    return None if epoch == NO_PARTITION_LEADER_EPOCH else epoch
