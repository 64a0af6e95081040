"""
Snapshots of the metadata log: files that replace all records before an offset (KIP-630).

::

    <end offset, 20 digits>-<epoch, 10 digits>.checkpoint            complete, never changed
                                              .checkpoint.part       being written
                                              .checkpoint.deleted    about to be removed

    SNAPSHOT_HEADER   control batch: the time of the last record that the snapshot replaces, and
                      the voters of a quorum that keeps them in the log
    records           in batches, as in the log; offsets count from 0
    SNAPSHOT_FOOTER   control batch: the end of a complete snapshot

Every batch carries the epoch of the name. ``bootstrap.checkpoint`` has the same form, epoch 0 and
the records that a fresh log begins with.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from barnabas.coordination.cluster.image import Versioned
from barnabas.coordination.cluster.record_frames import divided_batches, encode_record, quorum_batch
from barnabas.coordination.cluster.replay import Replay
from barnabas.protocol.codec.codec import encode
from barnabas.protocol.errors import CorruptMessage
from barnabas.protocol.records.batch import RecordBatch, batches, read_batch
from barnabas.protocol.records.control import (
    ControlRecordType,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
)
from barnabas.protocol.structs import NamedTuple
from barnabas.storage.fs.interface import Files

SUFFIX: Final = ".checkpoint"
PARTIAL_SUFFIX: Final = ".checkpoint.part"
DELETED_SUFFIX: Final = ".checkpoint.deleted"

_NAME = re.compile(r"(\d{20})-(\d{10})(?:-[^.]*)?(\.checkpoint(?:\.part|\.deleted)?)")


class SnapshotId(NamedTuple):
    """
    The records that a snapshot replaces: all before ``end_offset``, the last of them in ``epoch``.
    """

    end_offset: int
    epoch: int

    def path(self, directory: Path, suffix: str = SUFFIX) -> Path:
        """
        The file of the snapshot.
        """
        return directory / f"{self.end_offset:020d}-{self.epoch:010d}{suffix}"


class FoundSnapshots(NamedTuple):
    """
    The snapshots of a directory: complete ones in order, and files of incomplete ones.
    """

    complete: list[SnapshotId]
    leftovers: list[Path]


def find_snapshots(directory: Path, files: Files) -> FoundSnapshots:
    """
    The snapshots in *directory*.
    """
    found = FoundSnapshots([], [])
    for name in files.names(directory):
        match = _NAME.fullmatch(name)
        if match is None:
            continue
        if match[3] == SUFFIX:
            found.complete.append(SnapshotId(int(match[1]), int(match[2])))
        else:
            found.leftovers.append(directory / name)
    found.complete.sort()
    return found


def snapshot_batches(
    records: Iterable[Versioned],
    *,
    epoch: int,
    now_ms: int,
    last_contained_ms: int,
    quorum: Mapping[ControlRecordType, bytes],
) -> Iterator[bytearray]:
    """
    The batches of a snapshot.

    Args:
        now_ms: the timestamp of all of its records.
        last_contained_ms: the timestamp of the last record that it replaces.
        quorum: the last control records of each type that a snapshot keeps.
    """
    header = SnapshotHeaderRecord(version=0, last_contained_log_timestamp=last_contained_ms)
    control = {ControlRecordType.SNAPSHOT_HEADER: encode(header, 0), **quorum}
    batch = quorum_batch(control, base_offset=0, epoch=epoch, timestamp=now_ms)
    yield batch
    offset = len(control)
    values = (encode_record(*each) for each in records)
    for batch in divided_batches(values, base_offset=offset, epoch=epoch, timestamp=now_ms):
        yield batch
        offset = read_batch(memoryview(batch)).next_offset
    footer = {ControlRecordType.SNAPSHOT_FOOTER: encode(SnapshotFooterRecord(version=0), 0)}
    yield quorum_batch(footer, base_offset=offset, epoch=epoch, timestamp=now_ms)


def write_snapshot(
    directory: Path, snapshot: SnapshotId, content: Iterable[bytearray], files: Files
) -> None:
    """
    Write a snapshot atomically, and sync it.
    """
    partial = snapshot.path(directory, PARTIAL_SUFFIX)
    file = files.open(partial)
    try:
        file.truncate(0)
        for batch in content:
            file.append(batch)
        file.sync()
    finally:
        file.close()
    files.rename(partial, snapshot.path(directory))
    files.sync_directory(directory)


def read_snapshot(path: Path, files: Files) -> Replay:
    """
    The sum of the records of a snapshot.

    Raises:
        CorruptMessage: it is damaged or incomplete.
        InconsistentMetadata: its records contradict each other.
        UnknownMetadataRecord, UnsupportedFeatureLevel: a later release wrote it.
        FileNotFoundError: it does not exist.
    """
    replay = Replay()
    try:
        for batch in _batches(path, files):
            replay.batch(batch)
    except CorruptMessage as error:
        raise CorruptMessage(f"{path}: {error}") from error
    if not replay.is_complete:
        raise CorruptMessage(f"{path}: the snapshot has no footer")
    replay.last_timestamp = replay.snapshot_timestamp
    return replay


def _batches(path: Path, files: Files) -> Iterator[RecordBatch]:
    return batches(files.read_bytes(path))
