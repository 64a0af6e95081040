"""
Rows about segments, from their names and indexes and one header.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from struct import error as StructError
from typing import Any, Final

import pyarrow as pa

from barnabas.pipeline.logs.chunks import HEADER_CHUNK_BYTES, SegmentScan
from barnabas.pipeline.logs.indexes import position_of, time_entries
from barnabas.pipeline.reading.open import files_of
from barnabas.pipeline.reading.plan import SegmentRange
from barnabas.pipeline.schemas import SEGMENTS, project
from barnabas.protocol.errors import CorruptMessage
from barnabas.protocol.records.batch import HEADER_SIZE, read_batch
from barnabas.storage.fs.interface import File, Files
from barnabas.storage.readonly.files import opened
from barnabas.storage.readonly.segment import ReadOnlySegment
from barnabas.storage.state_files.file_names import log_file

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def segment_rows(piece: SegmentRange, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """
    The row of the segment, none if it was deleted since.
    """
    files = files_of(piece.url)
    path = log_file(Path(piece.directory), piece.base_offset)
    try:
        segment = ReadOnlySegment(files, path)
        first, newest = _times(files, segment, piece)
    except FileNotFoundError:
        return
    row: dict[str, Any] = {
        "topic": piece.topic_partition.topic,
        "partition": piece.topic_partition.partition,
        "baseOffset": piece.base_offset,
        "nextOffset": piece.offsets.end,
        "size": segment.size,
        "firstTimestamp": _time(first),
        "maxTimestamp": _time(newest),
        "modified": _time(segment.modified_ms),
        "active": piece.is_active,
        "path": str(path),
    }
    schema = project(SEGMENTS, columns)
    yield pa.RecordBatch.from_pylist([{name: row[name] for name in schema.names}], schema=schema)


def _times(
    files: Files, segment: ReadOnlySegment, piece: SegmentRange
) -> tuple[int | None, int | None]:
    """
    The timestamp of the first record and the largest of all, in ms.

    The time index of a segment is complete once there is a next one; before that, the headers tell
    what it does not know yet. If there is none, the headers tell it all.
    """
    times, offsets = time_entries(files, segment)
    newest = int(times[-1]) if len(times) else None
    with opened(files, segment.path) as file:
        first = _first_timestamp(file)
        if newest is None or piece.is_active:
            start = position_of(files, segment, int(offsets[-1])) if newest is not None else 0
            for chunk in SegmentScan(file, start, segment.size, HEADER_CHUNK_BYTES):
                newest = max(int(chunk.headers["max_timestamp"].max()), newest or -1)
    return first, newest


def _first_timestamp(file: File) -> int | None:
    try:
        batch = read_batch(memoryview(file.read(0, HEADER_SIZE)).toreadonly())
    except (CorruptMessage, StructError):
        return None
    return None if batch.delete_horizon_ms is not None else batch.base_timestamp


def _time(ms: int | None) -> datetime | None:
    return None if ms is None else _EPOCH + timedelta(milliseconds=ms)
