"""
Rows about segments, from their names and indexes and one header.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from struct import error as StructError
from typing import Any

import numpy as np
import pyarrow as pa

from barnabas.pipeline.decoding.arrow import timestamps
from barnabas.pipeline.logs.chunks import HEADER_CHUNK_BYTES, SegmentScan
from barnabas.pipeline.logs.indexes import position_of, time_entries
from barnabas.pipeline.options import ReadOptions
from barnabas.pipeline.reading.open import check_directory, files_of
from barnabas.pipeline.reading.plan import SegmentRange
from barnabas.pipeline.schemas import SEGMENTS, TIMESTAMP, project
from barnabas.protocol.errors import CorruptMessage
from barnabas.protocol.records.batch import HEADER_SIZE, read_batch
from barnabas.storage.fs.interface import File, Files
from barnabas.storage.readonly.files import opened
from barnabas.storage.readonly.segment import ReadOnlySegment
from barnabas.storage.state_files.file_names import log_file


def segment_rows(
    piece: SegmentRange, columns: Sequence[str], options: ReadOptions
) -> Iterator[pa.RecordBatch]:
    """
    The row of the segment, none if it was deleted since.

    Raises:
        MissingDirectory: as ``check_directory``.
    """
    files = files_of(piece.url, options.storage)
    path = log_file(Path(piece.directory), piece.base_offset)
    try:
        segment = ReadOnlySegment(files, path)
        first, newest = _times(files, segment)
    except FileNotFoundError:
        check_directory(piece, options)
        return
    row: dict[str, Any] = {
        "topic": piece.topic_partition.topic,
        "partition": piece.topic_partition.partition,
        "baseOffset": piece.base_offset,
        "nextOffset": piece.offsets.end,
        "size": segment.size,
        "firstTimestamp": first,
        "maxTimestamp": newest,
        "modified": segment.modified_ms,
        "active": piece.is_active,
        "path": str(path),
    }
    schema = project(SEGMENTS, columns)
    arrays = [_column(row[field.name], field.type) for field in schema]
    yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _column(value: Any, kind: pa.DataType) -> pa.Array:
    if kind == TIMESTAMP and value is not None:
        # No datetime is as late as a timestamp may be.
        return timestamps(np.array([value], np.int64))
    return pa.array([value], kind)


def _times(files: Files, segment: ReadOnlySegment) -> tuple[int | None, int | None]:
    """
    The timestamp of the first record and the largest of all, in ms.

    The headers tell what the time index does not know: of the active segment not yet, of others if
    it is torn.
    """
    times, offsets = time_entries(files, segment)
    newest = int(times[-1]) if len(times) else None
    start = 0 if newest is None else position_of(files, segment, int(offsets[-1]))
    with opened(files, segment.path) as file:
        first = _first_timestamp(file)
        for chunk in SegmentScan(file, start, segment.size, HEADER_CHUNK_BYTES):
            newest = max(int(chunk.headers["max_timestamp"].max()), newest or -1)
    return first, newest


def _first_timestamp(file: File) -> int | None:
    try:
        batch = read_batch(memoryview(file.read(0, HEADER_SIZE)).toreadonly())
    except (CorruptMessage, StructError):
        return None
    return None if batch.delete_horizon_ms is not None else batch.base_timestamp
