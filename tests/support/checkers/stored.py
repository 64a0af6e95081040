"""
After a clean stop, a log consists of whole batches in the order of their offsets, and every index
entry points at the start of one.

The files are read here with no code of the product, from the disk in memory or from the real one,
around faults that a test has arranged for the broker.

Legitimate exceptions:

* A broker that was killed leaves the tail of a log and of its indexes to the recovery (Kafka
  ``LogLoader.recoverLog``): only clean stops are checked.
* Entries of an offset index name the last offset of the batch at their position, or of several that
  were appended together (Kafka ``LogSegment.append``), so the offset only has to be in the segment,
  from that batch on. Compaction leaves such an offset in place when it removes the last record of a
  batch (Kafka ``MemoryRecords.filterTo`` keeps the last offset of the batch).
* A segment that was closed without a batch may have a time entry (Kafka
  ``LogSegment.onBecomeInactiveSegment``), so its time index is not compared.
* A file that was opened read-only, or a directory that failed, is not the broker's any more.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final
from zlib import crc32

from tests.support.checkers.acknowledged import RECORDS_AT, Found

MOST_BYTES: Final = 256 * 1024 * 1024
"""
Larger segments are passed over.
"""
SUFFIXES: Final = (".log", ".index", ".timeindex")
FORMAT_2: Final = 2

_FRAME: Final = struct.Struct(">qiib")
"""
The offset, the length, the leader epoch and the format of a batch.
"""
_DELTA: Final = struct.Struct(">i")
_LAST_OFFSET_DELTA_AT: Final = 23
_OFFSET_ENTRY: Final = struct.Struct(">ii")
_TIME_ENTRY: Final = struct.Struct(">qi")

Contents = Mapping[str, "bytes | bytearray"]
"""
The files of the segments of a log, by name.
"""


class Stored:
    """
    Reads the logs of a broker that has stopped.
    """

    def __init__(self, report: Callable[[str], None], files: Any) -> None:
        """
        Args:
            files: the disk of the broker.
        """
        self._report = report
        nodes = getattr(files, "nodes", None)
        self._folders = None if nodes is None else _in_memory(nodes)

    def check(self, directory: Path) -> dict[int, Found]:
        """
        Check the log in a directory.

        Returns:
            Its batches by their first offset.
        """
        if self._folders is not None:
            contents: Contents = self._folders.get(directory, {})
        else:
            contents = _on_disk(directory)
        batches: dict[int, Found] = {}
        for name in sorted(contents):
            if name.endswith(".log"):
                self._check_segment(directory, name.removesuffix(".log"), contents, batches)
        return batches

    def _check_segment(
        self, directory: Path, name: str, contents: Contents, batches: dict[int, Found]
    ) -> None:
        where = f"{directory.name}/{name}"
        positions = self._read_batches(where, contents[f"{name}.log"], batches)
        base = int(name)
        last = max((last for _, last in positions.values()), default=base)
        for relative, position in _entries(_OFFSET_ENTRY, contents.get(f"{name}.index")):
            batch = positions.get(position)
            if batch is None:
                self._report(
                    f"{where}.index: the entry of offset {base + relative} points at {position},"
                    " where no batch starts"
                )
            elif not batch[0] <= base + relative <= last:
                self._report(
                    f"{where}.index: the entry of offset {base + relative} points at the batch of"
                    f" offset {batch[0]}, the segment ends at {last}"
                )
        before = -1
        for time_ms, relative in _entries(_TIME_ENTRY, contents.get(f"{name}.timeindex")):
            if time_ms < before:
                self._report(f"{where}.timeindex: {time_ms} follows {before}")
            before = time_ms
            if positions and base + relative > last:
                self._report(
                    f"{where}.timeindex: the entry of {time_ms} names offset {base + relative},"
                    f" the segment ends at {last}"
                )

    def _read_batches(
        self, where: str, data: bytes | bytearray, batches: dict[int, Found]
    ) -> dict[int, tuple[int, int]]:
        """
        The first and last offset of each batch of a segment, by its position.
        """
        positions: dict[int, tuple[int, int]] = {}
        position, before = 0, int(where.rpartition("/")[2]) - 1
        while position < len(data):
            if position + _LAST_OFFSET_DELTA_AT + 4 > len(data):
                self._report(f"{where}.log: no whole batch at {position}")
                break
            offset, length, _, magic = _FRAME.unpack_from(data, position)
            if length <= 0 or position + 12 + length > len(data):
                self._report(f"{where}.log: no whole batch at {position}")
                break
            last = offset
            if magic >= FORMAT_2:
                last += _DELTA.unpack_from(data, position + _LAST_OFFSET_DELTA_AT)[0]
            if offset <= before:
                self._report(f"{where}.log: offset {offset} at {position} follows {before}")
            positions[position] = (offset, last)
            records = memoryview(data)[position + RECORDS_AT : position + 12 + length]
            batches[offset] = Found(last, crc32(records))
            before = last
            position += 12 + length
        return positions


def _entries(entry: struct.Struct, data: bytes | bytearray | None) -> Iterable[tuple[Any, ...]]:
    if not data:
        return ()
    whole = len(data) - len(data) % entry.size
    return entry.iter_unpack(memoryview(data)[:whole])


def _in_memory(nodes: Mapping[Path, Any]) -> dict[Path, dict[str, bytearray]]:
    folders: dict[Path, dict[str, bytearray]] = {}
    for path, node in dict(nodes).items():
        if path.suffix in SUFFIXES:
            folders.setdefault(path.parent, {})[path.name] = node.data
    return folders


def _on_disk(directory: Path) -> Contents:
    contents: dict[str, bytes] = {}
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                if entry.name.endswith(SUFFIXES):
                    size = entry.stat().st_size
                    contents[entry.name] = b"" if size == 0 else _read(entry.path, size)
    except FileNotFoundError:
        return {}
    return contents


def _read(path: str, size: int) -> bytes:
    if size > MOST_BYTES:
        return b""
    with open(path, "rb") as file:
        return file.read()
