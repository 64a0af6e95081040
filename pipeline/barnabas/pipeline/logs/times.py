"""
The first offset whose record is not older than a time, found in files.

The search is that of a broker for ListOffsets: both indexes, then the headers of batches (Kafka's
LogSegment.findOffsetByTimestamp). An index that ends before the time does not rule out its segment,
as a broker assumes: it may be torn. The headers behind its last entry say it, which are few.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from barnabas.pipeline.decoding.arena import BadBatch
from barnabas.pipeline.decoding.arrow import milliseconds
from barnabas.pipeline.decoding.batch_headers import Headers, last_offsets
from barnabas.pipeline.decoding.decode import OffsetRange, RowPartition, Wanted, decode
from barnabas.pipeline.errors import CorruptBatch
from barnabas.pipeline.logs.chunks import HEADER_CHUNK_BYTES as _CHUNK_BYTES
from barnabas.pipeline.logs.chunks import Chunk, SegmentScan
from barnabas.pipeline.logs.indexes import time_entries
from barnabas.pipeline.logs.partition import StoredLog
from barnabas.pipeline.schemas import FAR_TIMESTAMP
from barnabas.storage.readonly.files import opened
from barnabas.storage.readonly.segment import ReadOnlySegment


def first_offset_at(
    log: StoredLog, timestamp_ms: int, offsets: OffsetRange, max_batch_bytes: int
) -> int | None:
    """
    The first offset in *offsets* with a timestamp of at least *timestamp_ms*, or None.

    Raises:
        CorruptBatch: the batch that should have it cannot be read.
    """
    wanted = Wanted(("offset", "timestamp", FAR_TIMESTAMP), max_batch_bytes=max_batch_bytes)
    search = _Search(log, timestamp_ms, offsets, wanted)
    for segment in log.segments:
        if segment.base_offset >= offsets.end:
            break
        found = search.in_segment(segment)
        if found is not None:
            return found
    return None


class _Search(NamedTuple):
    """
    The time and the offsets of one search.
    """

    log: StoredLog
    timestamp_ms: int
    offsets: OffsetRange
    wanted: Wanted

    def in_segment(self, segment: ReadOnlySegment) -> int | None:
        files = self.log.directory.files
        times, indexed = time_entries(files, segment)
        older = int(np.searchsorted(times, self.timestamp_ms))
        start = int(indexed[older - 1]) if older else segment.base_offset
        position = self.log.position_of(segment, max(start, self.offsets.start))
        try:
            with opened(files, segment.path) as file:
                scan = SegmentScan(file, position, segment.size, _CHUNK_BYTES)
                return self._along(segment, scan)
        except FileNotFoundError:
            return None

    def _along(self, segment: ReadOnlySegment, chunks: Iterable[Chunk]) -> int | None:
        for chunk in chunks:
            headers = chunk.headers
            may_have = headers["max_timestamp"] >= self.timestamp_ms
            may_have &= last_offsets(headers) >= self.offsets.start
            may_have &= headers["base_offset"] < self.offsets.end
            for index in np.flatnonzero(may_have).tolist():
                try:
                    found = self._in_batch(chunk.data, headers[index : index + 1])
                except BadBatch as bad:
                    position = chunk.position + int(headers["position"][index])
                    offset = int(headers["base_offset"][index])
                    path = str(segment.path)
                    raise CorruptBatch(path, position, offset, bad.reason) from bad
                if found is not None:
                    return found
        return None

    def _in_batch(self, data: bytes, header: Headers) -> int | None:
        for rows in decode(data, header, RowPartition("", 0), self.wanted, self.offsets):
            ms = milliseconds(rows).to_numpy(zero_copy_only=False)
            late_enough = np.flatnonzero(ms >= self.timestamp_ms)
            if len(late_enough):
                return int(rows.column("offset")[int(late_enough[0])].as_py())
        return None
