"""
The position of an offset in a segment, found with the indexes of the segment.

An index may be missing, torn, older or newer than the file, or filled with zeros up to its largest
size. So a position counts only if a batch is there whose offsets fit the segment; otherwise the
search begins at the first byte.
"""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from struct import Struct
from typing import Final

import numpy as np
import numpy.typing as npt

from barnabas.pipeline.decoding.batch_headers import SMALLEST_BATCH
from barnabas.pipeline.decoding.varint_columns import Ints
from barnabas.protocol.records.batch import MAGIC
from barnabas.storage.fs.interface import File, Files
from barnabas.storage.index import offset_index, time_index
from barnabas.storage.readonly.files import opened
from barnabas.storage.readonly.segment import ReadOnlySegment
from barnabas.storage.state_files.file_names import offset_index_file, time_index_file


def _columns(entry: Struct, *names: str) -> np.dtype[np.void]:
    """
    The fields of an index entry, as the engine declares it, as columns.
    """
    return np.dtype(
        [(name, f">{code}") for name, code in zip(names, entry.format[1:], strict=True)]
    )


_OFFSET: Final = _columns(offset_index.ENTRY, "offset", "position")
_TIME: Final = _columns(time_index.ENTRY, "timestamp", "offset")
_HEADER: Final = Struct(">qi4xb6xi")
"""Base offset, length, magic, last offset delta."""
KEPT_ENTRIES: Final = 4 << 20
"""64 MiB of them: the indexes of 16 segments of 1 GiB with the smallest batches."""


def index_entries(files: Files, segment: ReadOnlySegment) -> tuple[Ints, Ints]:
    """
    Offsets and positions in the index, up to the first that does not grow; none without an index.
    """
    entries = _entries(files, offset_index_file(segment.path.parent, segment.base_offset), _OFFSET)
    offsets = entries["offset"].astype(np.int64)
    positions = entries["position"].astype(np.int64)
    # The first entry may have offset 0, but none has position 0; zeros follow the last one.
    grows = positions > 0
    grows[1:] &= (positions[1:] > positions[:-1]) & (offsets[1:] > offsets[:-1])
    end = _first_false(grows)
    return offsets[:end] + segment.base_offset, positions[:end]


class KeptIndexes:
    """
    The offset indexes that a plan has read; each is read once, while all of them have few entries.

    What was used last is kept. A plan looks at one segment after the other, and comes back to them
    only to make smaller tasks of what is small.
    """

    def __init__(self, files: Files) -> None:
        self._files = files
        self._kept: OrderedDict[Path, tuple[Ints, Ints]] = OrderedDict()
        self._entries = 0

    def entries(self, segment: ReadOnlySegment) -> tuple[Ints, Ints]:
        """
        As ``index_entries``, and as it was at the first use.
        """
        kept = self._kept.get(segment.path)
        if kept is not None:
            self._kept.move_to_end(segment.path)
            return kept
        read = self._kept[segment.path] = index_entries(self._files, segment)
        self._entries += len(read[0])
        while self._entries > KEPT_ENTRIES and len(self._kept) > 1:
            _, (offsets, _) = self._kept.popitem(last=False)
            self._entries -= len(offsets)
        return read


def time_entries(files: Files, segment: ReadOnlySegment) -> tuple[Ints, Ints]:
    """
    Timestamps (ms) and offsets in the time index, up to the first timestamp that does not grow or
    offset that falls.
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


def position_of(
    files: Files, segment: ReadOnlySegment, offset: int, kept: KeptIndexes | None = None
) -> int:
    """
    The position of a batch that has *offset*, or is in front of the batch that has it.

    Args:
        kept: the indexes that were read before, if they are to be used.
    """
    if offset <= segment.base_offset:
        return 0
    offsets, positions = index_entries(files, segment) if kept is None else kept.entries(segment)
    # An entry has the last offset of the batch that it leads to.
    slot = int(np.searchsorted(offsets, offset, side="right")) - 1
    if slot < 0:
        return 0
    position = int(positions[slot])
    found = batch_at(files, segment, position)
    return position if found is not None and found <= offset else 0


def batch_at(files: Files, segment: ReadOnlySegment, position: int) -> int | None:
    """
    The base offset of the batch at *position*; None if there is none, or one of lower offsets.
    """
    try:
        with opened(files, segment.path) as file:
            base_offset = base_offset_in(file, position)
    except FileNotFoundError:
        return None
    return base_offset if base_offset is None or base_offset >= segment.base_offset else None


def base_offset_in(file: File, position: int) -> int | None:
    """
    The base offset of the batch at *position*; None if the header there is not that of a batch.
    """
    data = file.read(position, _HEADER.size)
    if len(data) < _HEADER.size:
        return None
    base_offset, length, magic, delta = _HEADER.unpack(data)
    return int(base_offset) if magic == MAGIC and length >= SMALLEST_BATCH and delta >= 0 else None


def next_indexed(files: Files, path: Path, position: int) -> int | None:
    """
    The position of the first batch behind *position* that is in the index of the segment *path*.
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
