"""
The offsets of a partition that can be read, found in its files.

::

    log start offset    log-start-offset-checkpoint, else the first segment's base
    high watermark      replication-offset-checkpoint; a broker writes it every 5 s and at its stop
    log end             behind the last whole batch of the last segment
    last stable offset  the first offset of the first transaction that is open at the high
                        watermark: from the newest snapshot of the producers and the batches
                        behind it
    aborted             .txnindex of every segment

A directory without a checkpoint of high watermarks, for example a copy of single partitions, is
read up to the end of the log. A partition that is missing in a checkpoint is newer than the
checkpoint: none of its records is known to be committed.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from functools import cached_property
from typing import Final

import numpy as np

from barnabas.pipeline.decoding.batch_headers import Headers, has_flag, last_offsets
from barnabas.pipeline.decoding.decode import bad_checksums
from barnabas.pipeline.errors import OldFormat
from barnabas.pipeline.logs.chunks import HEADER_CHUNK_BYTES, SegmentScan
from barnabas.pipeline.logs.directory import LogDirectory
from barnabas.pipeline.logs.indexes import position_of
from barnabas.pipeline.options import IsolationLevel, ReadUpTo
from barnabas.protocol.records.batch import CONTROL_FLAG, TRANSACTIONAL_FLAG
from barnabas.storage.errors import CorruptSnapshot
from barnabas.storage.index.txn_index import AbortedTxn
from barnabas.storage.producers.snapshots import read_snapshot
from barnabas.storage.readonly.files import opened
from barnabas.storage.readonly.partition import PartitionDirectory
from barnabas.storage.readonly.segment import ReadOnlySegment
from barnabas.storage.state_files.file_names import transaction_index_file
from barnabas.storage.units import LONG_MAX

logger = logging.getLogger(__name__)

_QUICKLY_SCANNED: Final = 1 << 20
"""A scan of a segment of this size is as fast as a search that begins with its index."""


class StoredLog:
    """
    The log of one partition, with its files as they were at the first use.

    Every method that reads batches raises ``OldFormat`` for messages of version 0 or 1.
    """

    def __init__(self, log_directory: LogDirectory, directory: PartitionDirectory) -> None:
        self.log_directory = log_directory
        self.directory = directory
        self.topic_partition = directory.topic_partition

    @cached_property
    def segments(self) -> tuple[ReadOnlySegment, ...]:
        return self.directory.segments

    @property
    def start_offset(self) -> int:
        """
        The first offset that can be read.
        """
        base = self.segments[0].base_offset if self.segments else 0
        return max(base, self.log_directory.log_start_offsets.get(self.topic_partition, base))

    def end_offset(self, up_to: ReadUpTo, isolation_level: IsolationLevel) -> int:
        """
        The offset behind the last one that can be read.
        """
        end = self.log_end_offset
        if up_to is ReadUpTo.HIGH_WATERMARK and self.log_directory.high_watermarks is not None:
            noted = self.log_directory.high_watermarks.get(self.topic_partition, self.start_offset)
            end = min(end, noted)
        if isolation_level is IsolationLevel.READ_COMMITTED:
            end = min(end, self.last_stable_offset(end))
        return max(end, self.start_offset)

    @cached_property
    def log_end_offset(self) -> int:
        """
        The offset behind the last whole batch.

        The last batch counts only if its checksum is right: after a crash, a torn batch may have
        its whole length, as the file was lengthened before it was written.
        """
        return self.end_of(self.segments[-1]) if self.segments else self.start_offset

    def end_of(self, segment: ReadOnlySegment) -> int:
        """
        The offset behind the last whole batch of *segment*.
        """
        position = 0 if segment.size <= _QUICKLY_SCANNED else self.position_of(segment, LONG_MAX)
        end = segment.base_offset
        for data, headers in self._scan(segment, position):
            end = int(last_offsets(headers)[-1]) + 1
            if bad_checksums(data, headers[-1:]):
                end = int(headers["base_offset"][-1])
        return end

    def position_of(self, segment: ReadOnlySegment, offset: int) -> int:
        """
        The position in *segment* of a batch that has *offset*, or is in front of it.
        """
        return position_of(self.directory.files, segment, offset, self.log_directory.indexes)

    def last_stable_offset(self, high_watermark: int) -> int:
        """
        The first offset of a transaction that is open at *high_watermark*, or else that offset.
        """
        position, open_since = self._newest_snapshot(high_watermark)
        for segment in self._segments_from(position):
            if segment.base_offset >= high_watermark:
                break
            for _, headers in self._scan(segment, self.position_of(segment, position)):
                seen = last_offsets(headers) >= position
                seen &= headers["base_offset"] < high_watermark
                _note_transactions(headers[seen], open_since)
        return min([high_watermark, *open_since.values()])

    def aborted(self) -> list[AbortedTxn]:
        """
        All aborted transactions, in the order of their markers.
        """
        names = frozenset(self.directory.names)
        path = self.directory.path
        return [
            transaction
            for segment in self.segments
            if transaction_index_file(path, segment.base_offset).name in names
            for transaction in segment.txn_entries()
        ]

    def _newest_snapshot(self, high_watermark: int) -> tuple[int, dict[int, int]]:
        """
        An offset, and by producer the first offset of the transaction that is open there.
        """
        for snapshot in reversed(self.directory.snapshots):
            if snapshot.offset > high_watermark:
                continue
            try:
                entries = read_snapshot(self.directory.files, snapshot.path)
            except (CorruptSnapshot, FileNotFoundError):
                continue
            return snapshot.offset, {
                entry.producer_id: entry.current_txn_first_offset
                for entry in entries
                if entry.current_txn_first_offset is not None
            }
        return self.start_offset, {}

    def _segments_from(self, offset: int) -> tuple[ReadOnlySegment, ...]:
        """
        The last segment whose base offset is not above *offset*, and those behind it.
        """
        bases = np.array([segment.base_offset for segment in self.segments], np.int64)
        return self.segments[max(0, int(np.searchsorted(bases, offset, side="right")) - 1) :]

    def _scan(self, segment: ReadOnlySegment, position: int) -> Iterator[tuple[bytes, Headers]]:
        try:
            with opened(self.directory.files, segment.path) as file:
                scan = SegmentScan(file, position, segment.size, HEADER_CHUNK_BYTES)
                for chunk in scan:
                    yield chunk.data, chunk.headers
        except FileNotFoundError:
            return
        if scan.stop is not None and scan.stop.is_old_format:
            path, (at, reason, _) = str(segment.path), scan.stop
            raise OldFormat(path, at, segment.base_offset, reason)


def _note_transactions(headers: Headers, open_since: dict[int, int]) -> None:
    transactional = headers[has_flag(headers, TRANSACTIONAL_FLAG)]
    for producer_id, base_offset, is_marker in zip(
        transactional["producer_id"].tolist(),
        transactional["base_offset"].tolist(),
        has_flag(transactional, CONTROL_FLAG).tolist(),
        strict=True,
    ):
        if is_marker:
            open_since.pop(producer_id, None)
        else:
            open_since.setdefault(producer_id, base_offset)
