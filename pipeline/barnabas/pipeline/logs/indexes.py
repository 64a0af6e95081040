"""
Where in a segment an offset is, by the segment's indexes.

Nothing is believed that an index says of positions: it may be missing, torn, of another state of
the file, or filled with zeros to the size that it may once have. Where it leads to, there has to be
a batch with offsets that fit; else the way begins at the segment's first byte.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from struct import Struct
from typing import Final

import numpy as np
import numpy.typing as npt

from barnabas.pipeline.decoding.batch_headers import SMALLEST_BATCH
from barnabas.pipeline.decoding.varint_columns import Ints
from barnabas.protocol.records.batch import MAGIC
from barnabas.storage.fs.interface import File, Files
from barnabas.storage.readonly.segment import ReadOnlySegment
from barnabas.storage.state_files.file_names import offset_index_file, time_index_file

_OFFSET: Final = np.dtype([("offset", ">i4"), ("position", ">i4")])
_TIME: Final = np.dtype([("timestamp", ">i8"), ("offset", ">i4")])
_HEADER: Final = Struct(">qi4xb6xi")
"""Base offset, length, magic, last offset delta."""


def index_entries(files: Files, segment: ReadOnlySegment) -> tuple[Ints, Ints]:
    """
    Offsets and positions in the index, as far as both grow; none if there is no index.
    """
    entries = _entries(files, offset_index_file(segment.path.parent, segment.base_offset), _OFFSET)
    offsets = entries["offset"].astype(np.int64)
    positions = entries["position"].astype(np.int64)
    # The first entry may have offset 0, but none has position 0; zeros follow the last one.
    grows = positions > 0
    grows[1:] &= (positions[1:] > positions[:-1]) & (offsets[1:] > offsets[:-1])
    end = _first_false(grows)
    return offsets[:end] + segment.base_offset, positions[:end]


def time_entries(files: Files, segment: ReadOnlySegment) -> tuple[Ints, Ints]:
    """
    Timestamps (ms) and offsets in the time index, as far as timestamps grow and offsets do not
    fall.
    """
    entries = _entries(files, time_index_file(segment.path.parent, segment.base_offset), _TIME)
    times = entries["timestamp"].astype(np.int64)
    offsets = entries["offset"].astype(np.int64)
    grows = times > 0
    grows[1:] &= (times[1:] > times[:-1]) & (offsets[1:] >= offsets[:-1])
    end = _first_false(grows)
    return times[:end], offsets[:end] + segment.base_offset


def _entries(files: Files, path: Path, entry: np.dtype[np.void]) -> npt.NDArray[np.void]:
    try:
        data = files.read_bytes(path)
    except FileNotFoundError:
        data = b""
    return np.frombuffer(data[: len(data) - len(data) % entry.itemsize], entry)


def _first_false(flags: npt.NDArray[np.bool_]) -> int:
    false = np.flatnonzero(~flags)
    return int(false[0]) if len(false) else len(flags)


def position_of(files: Files, segment: ReadOnlySegment, offset: int) -> int:
    """
    Where a batch begins such that *offset* is in it or behind it.
    """
    if offset <= segment.base_offset:
        return 0
    offsets, positions = index_entries(files, segment)
    # An entry has the last offset of the batch that it leads to.
    slot = int(np.searchsorted(offsets, offset, side="right")) - 1
    if slot < 0:
        return 0
    position = int(positions[slot])
    found = batch_at(files, segment, position)
    return position if found is not None and found <= offset else 0


def batch_at(files: Files, segment: ReadOnlySegment, position: int) -> int | None:
    """
    The base offset of the batch at *position*, if there is one that fits the segment.
    """
    try:
        file = files.open(segment.path, create=False, read_only=True)
    except FileNotFoundError:
        return None
    with closing(file):
        base_offset = base_offset_in(file, position)
    return base_offset if base_offset is None or base_offset >= segment.base_offset else None


def base_offset_in(file: File, position: int) -> int | None:
    """
    The base offset of what looks like a batch at *position* of *file*.
    """
    data = file.read(position, _HEADER.size)
    if len(data) < _HEADER.size:
        return None
    base_offset, length, magic, delta = _HEADER.unpack(data)
    return int(base_offset) if magic == MAGIC and length >= SMALLEST_BATCH and delta >= 0 else None


def next_indexed(files: Files, path: Path, position: int) -> int | None:
    """
    The first batch behind *position* of the segment file *path* of which its index knows.
    """
    try:
        segment = ReadOnlySegment(files, path)
    except FileNotFoundError:
        return None
    _, positions = index_entries(files, segment)
    for candidate in positions[positions > position].tolist():
        if batch_at(files, segment, candidate) is not None:
            return int(candidate)
    return None
