"""
Snapshots of the state of a log's producers.

::

    00000000000000000042.snapshot       the state after offset 41

    version   int16    1
    checksum  uint32   CRC-32C of all that follows
    count     int32    entries
    entry     46 bytes each, in no order:
        producer id               int64
        producer epoch            int16
        last sequence             int32   -1 if no batch is known
        last offset               int64   -1 if no batch is known
        offset delta              int32   of the last batch
        last timestamp            int64   of the last batch or marker, in ms
        coordinator epoch         int32   -1 if there was no marker
        first offset of open txn  int64   -1 if there is none

A snapshot has only the last of the batches that the log keeps of a producer.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable
from pathlib import Path
from struct import Struct
from typing import Final

from barnabas.protocol.records.crc32c import crc32c
from barnabas.storage.errors import CorruptSnapshot
from barnabas.storage.fs.interface import Files
from barnabas.storage.producers.entry import ProducerStateEntry
from barnabas.storage.state_files.file_names import (
    DELETED_SUFFIX,
    PRODUCER_SNAPSHOT_SUFFIX,
    offset_from_file_name,
    producer_snapshot_file,
)

logger = logging.getLogger(__name__)

VERSION: Final = 1
_VERSION: Final = Struct(">h")
_HEADER: Final = Struct(">hIi")
_COUNT: Final = Struct(">i")
_CHECKED_FROM: Final = 6
_ENTRY: Final = Struct(">qhiqiqiq")
NONE: Final = -1


class SnapshotFile:
    """
    The file of one snapshot: the state before ``offset``.
    """

    __slots__ = ("_directory", "_files", "_name", "offset")

    def __init__(self, files: Files, directory: Path, name: str) -> None:
        self._files = files
        # A path is several objects, and a log may have thousands of snapshots that are never read.
        self._directory = directory
        self._name = name
        self.offset = offset_from_file_name(name)

    @property
    def path(self) -> Path:
        return self._directory / self._name

    def delete_if_exists(self) -> bool:
        deleted = self._files.remove(self.path)
        if deleted:
            logger.debug("Deleted producer state snapshot %s", self.path)
        return deleted

    def rename_to_delete(self) -> bool:
        """
        Mark the file for deletion; return whether there was one.
        """
        path, marked = self.path, f"{self._name}{DELETED_SUFFIX}"
        exists = self._files.exists(path)
        if exists:
            self._files.rename(path, path.with_name(marked))
        self._name = marked
        return exists

    def update_parent_dir(self, directory: Path) -> None:
        """
        Follow the directory, which was renamed.
        """
        self._directory = directory

    def flush(self) -> None:
        """
        Return once the snapshot survives a crash of the machine, or was removed in the meantime.
        """
        try:
            file = self._files.open(self.path, create=False)
        except FileNotFoundError:
            return
        try:
            file.sync()
        finally:
            file.close()

    def __repr__(self) -> str:
        return f"SnapshotFile(offset={self.offset}, file={self.path})"


def list_snapshot_files(
    files: Files, directory: Path, names: Iterable[str] | None = None
) -> list[SnapshotFile]:
    """
    The snapshots in *directory*, by offset.

    Args:
        names: those of the files in it, sorted, if they are known.
    """
    return [
        SnapshotFile(files, directory, name)
        for name in (files.names(directory) if names is None else names)
        if is_snapshot_name(name)
    ]


def is_snapshot_name(name: str) -> bool:
    """
    Whether a file with that name is a snapshot.
    """
    return name.endswith(PRODUCER_SNAPSHOT_SUFFIX) and name[: name.index(".")].isdecimal()


class ProducerSnapshots:
    """
    The snapshots of one log by their offsets.

    Invariants:

    1. ``offsets`` are those of the files in the directory, unless another program removed one.

    The log that owns them holds its lock.
    """

    __slots__ = ("_directory", "_files", "_snapshots")

    def __init__(self, files: Files, directory: Path, names: Iterable[str] | None = None) -> None:
        """
        Args:
            names: those of the files in *directory*, sorted, if they are known.
        """
        self._files = files
        self._directory = directory
        found = list_snapshot_files(files, directory, names)
        self._snapshots = {snapshot.offset: snapshot for snapshot in found}

    @property
    def offsets(self) -> list[int]:
        return list(self._snapshots)

    @property
    def latest_offset(self) -> int | None:
        return max(self._snapshots, default=None)

    def write(
        self, offset: int, entries: Collection[ProducerStateEntry], *, sync: bool
    ) -> SnapshotFile:
        """
        Write the snapshot at *offset*; with *sync* it survives a crash of the machine then.
        """
        path = producer_snapshot_file(self._directory, offset)
        write_snapshot(self._files, path, entries, sync=sync)
        snapshot = self._snapshots[offset] = SnapshotFile(self._files, path.parent, path.name)
        return snapshot

    def read(self, offset: int) -> list[ProducerStateEntry]:
        """
        Raises:
            CorruptSnapshot: the file is no snapshot.
        """
        return read_snapshot(self._files, self._snapshots[offset].path)

    def flush(self, offset: int) -> None:
        """
        Return once the snapshot at *offset*, if it still exists, survives a crash of the machine.
        """
        snapshot = self._snapshots.get(offset)
        if snapshot is not None:
            snapshot.flush()
            self._files.sync_directory(snapshot.path.parent)

    def remove(self, offsets: Iterable[int]) -> None:
        for offset in offsets:
            self._snapshots.pop(offset).delete_if_exists()

    def remove_strays(self, segment_base_offsets: Iterable[int]) -> None:
        """
        Remove snapshots that no segment begins with.

        The newest of them stays if it is newer than the last segment: it was written when the log
        was closed.
        """
        bases = frozenset(segment_base_offsets)
        strays = sorted(offset for offset in self._snapshots if offset not in bases)
        if strays and strays[-1] >= max(bases, default=0):
            del strays[-1]
        self.remove(strays)

    def mark_for_deletion(self, offset: int) -> SnapshotFile | None:
        """
        Rename the snapshot at *offset*, which does not count from then on. None if there is none,
        or if another program has removed the file.
        """
        snapshot = self._snapshots.pop(offset, None)
        if snapshot is None or not snapshot.rename_to_delete():
            return None
        return snapshot

    def update_parent_dir(self, directory: Path) -> None:
        """
        Follow the directory, which was renamed.
        """
        self._directory = directory
        for snapshot in self._snapshots.values():
            snapshot.update_parent_dir(directory)


def encode_snapshot(entries: Collection[ProducerStateEntry]) -> bytes:
    body = bytearray(_COUNT.pack(len(entries)))
    for entry in entries:
        first_offset = entry.current_txn_first_offset
        body += _ENTRY.pack(
            entry.producer_id,
            entry.producer_epoch,
            entry.last_seq,
            entry.last_data_offset,
            entry.last_offset_delta,
            entry.last_timestamp,
            entry.coordinator_epoch,
            NONE if first_offset is None else first_offset,
        )
    return _HEADER.pack(VERSION, crc32c(body), len(entries)) + body[_COUNT.size :]


def decode_snapshot(data: bytes) -> list[ProducerStateEntry]:
    """
    Raises:
        CorruptSnapshot: *data* are not a snapshot, for the reason that Kafka's ProducerStateManager
            names.
    """
    if (flaw := _schema_flaw(data)) is not None:
        raise CorruptSnapshot(f"Snapshot failed schema validation: {flaw}")
    _version, crc, count = _HEADER.unpack_from(data)
    computed = crc32c(memoryview(data)[_CHECKED_FROM:])
    if crc != computed:
        raise CorruptSnapshot(
            f"Snapshot is corrupt (CRC is no longer valid). Stored crc: {crc}. "
            f"Computed crc: {computed}"
        )
    end = _HEADER.size + count * _ENTRY.size
    return [_entry(fields) for fields in _ENTRY.iter_unpack(data[_HEADER.size : end])]


def _schema_flaw(data: bytes) -> str | None:
    """
    Kafka's reason why *data* do not have the form of a snapshot; None if they have it.
    """
    if len(data) < _VERSION.size:
        return "null"
    (version,) = _VERSION.unpack_from(data)
    if version != VERSION:
        return f"Snapshot contained an unknown file version {version}"
    if len(data) < _HEADER.size:
        return "null"
    count = _HEADER.unpack_from(data)[2]
    left = len(data) - _HEADER.size
    if count < 0:
        return "non-nullable field producerEntries was serialized as null"
    if count > left:
        return (
            f"Tried to allocate a collection of size {count}, but there are only {left} bytes "
            "remaining."
        )
    return None if count * _ENTRY.size <= left else "null"


def _entry(fields: tuple[int, ...]) -> ProducerStateEntry:
    producer_id, epoch, last_sequence, last_offset, delta, timestamp, coordinator, first = fields
    entry = ProducerStateEntry(
        producer_id, epoch, coordinator, timestamp, None if first < 0 else first
    )
    if last_offset >= 0:
        entry.add_batch(epoch, last_sequence, last_offset, delta, timestamp=timestamp)
    return entry


def read_snapshot(files: Files, path: Path) -> list[ProducerStateEntry]:
    """
    Raises:
        CorruptSnapshot: the file is no snapshot.
        FileNotFoundError: there is none.
    """
    return decode_snapshot(files.read_bytes(path))


def write_snapshot(
    files: Files, path: Path, entries: Collection[ProducerStateEntry], *, sync: bool
) -> None:
    """
    Write a snapshot; with *sync* it survives a crash of the machine from now on.

    Without, the file may be torn afterwards, as its checksum then shows: an older one is used.
    """
    file = files.open(path)
    try:
        file.truncate(0)
        file.append(encode_snapshot(entries))
        if sync:
            file.sync()
    finally:
        file.close()
    if sync:
        files.sync_directory(path.parent)
