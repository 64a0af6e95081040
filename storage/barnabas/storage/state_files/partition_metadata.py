"""
The file that says to which topic a log belongs.

::

    version: 0
    topic_id: dUHZ4DSIQA2iHFIpYpsSjw

There is no newline at the end. Topics that come and go may have the same name, so only the id tells
them apart; a log without this file is a stray at the next start (KIP-516).
"""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from uuid import UUID

from barnabas.protocol.named_tuple import NamedTuple
from barnabas.storage.errors import CorruptCheckpoint, InconsistentTopicId, KafkaStorageError
from barnabas.storage.fs.interface import Files
from barnabas.storage.uuids import ZERO_UUID, parse_uuid, uuid_text

PARTITION_METADATA: Final = "partition.metadata"
CURRENT_VERSION: Final = 0


class PartitionMetadata(NamedTuple):
    """
    What the file says.
    """

    version: int
    topic_id: UUID


def format_partition_metadata(topic_id: UUID) -> bytes:
    return f"version: {CURRENT_VERSION}\ntopic_id: {uuid_text(topic_id)}".encode()


def read_partition_metadata(files: Files, directory: Path) -> PartitionMetadata:
    """
    What the file of the log in *directory* says.

    Raises:
        CorruptCheckpoint: the file is not as it should be.
        FileNotFoundError: there is none.
        KafkaStorageError: it cannot be read.
    """
    path = directory / PARTITION_METADATA
    data = files.read_bytes(path)
    known = _known.get(data)
    if known is None:
        known = parse_partition_metadata(data, path)
        # The partitions of a topic say the same, and follow each other at a start.
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        _known[data] = known
    return known


_MOST_KNOWN: Final = 100
_known: Final[dict[bytes, PartitionMetadata]] = {}


def parse_partition_metadata(data: bytes, path: Path) -> PartitionMetadata:
    """
    Raises:
        CorruptCheckpoint: the file of that *path* is not as it should be.
    """
    lines = data.decode(errors="replace").splitlines()
    version = _value(lines, 0, path)
    # Later versions may say more, but will say this.
    if not re.fullmatch(r"\+?[0-9]+", version):
        raise CorruptCheckpoint(
            f"Unrecognized version of partition metadata file ({path}): {version}", path=path
        )
    try:
        topic_id = parse_uuid(_value(lines, 1, path))
    except ValueError as error:
        raise _malformed(lines[1], path) from error
    if topic_id == ZERO_UUID:
        raise CorruptCheckpoint(f"Invalid topic ID in partition metadata file ({path})", path=path)
    return PartitionMetadata(int(version), topic_id)


def _value(lines: Sequence[str], at: int, path: Path) -> str:
    line = lines[at] if at < len(lines) else ""
    words = re.split(r":\s+", line)
    if len(words) != 2:
        raise _malformed(line, path)
    return words[1]


def _malformed(line: str, path: Path) -> CorruptCheckpoint:
    return CorruptCheckpoint(
        f"Malformed line in partition metadata file [{path}]: {line}", path=path
    )


class PartitionMetadataFile:
    """
    The file of one log. It is written when there is time, at the latest before the first append.

    Safe from any thread.
    """

    __slots__ = ("_dirty_topic_id", "_files", "_writing", "path")

    def __init__(self, files: Files, directory: Path) -> None:
        self._files = files
        self._writing = threading.Lock()
        self._dirty_topic_id: UUID | None = None
        self.path = directory / PARTITION_METADATA

    def update_parent_dir(self, directory: Path) -> None:
        """
        Somebody has renamed the directory of the log.
        """
        with self._writing:
            self.path = directory / PARTITION_METADATA

    def record(self, topic_id: UUID) -> None:
        """
        Remember to write *topic_id*.

        Raises:
            InconsistentTopicId: another one waits to be written.
        """
        dirty = self._dirty_topic_id
        if dirty is not None and dirty != topic_id:
            raise InconsistentTopicId(
                f"Tried to record topic ID {uuid_text(topic_id)} to file but had already recorded "
                f"{uuid_text(dirty)}"
            )
        self._dirty_topic_id = topic_id

    def maybe_flush(self) -> None:
        """
        Write what was recorded, unless that has been done; it survives a crash then.
        """
        if self._dirty_topic_id is None:
            return
        with self._writing:
            if (topic_id := self._dirty_topic_id) is not None:
                self._files.write_atomically(self.path, format_partition_metadata(topic_id))
                self._dirty_topic_id = None

    def exists(self) -> bool:
        return self._files.exists(self.path)

    def read(self) -> PartitionMetadata:
        """
        Raises:
            CorruptCheckpoint: the file is not as it should be.
            KafkaStorageError: it cannot be read, or is not there.
        """
        with self._writing:
            try:
                return read_partition_metadata(self._files, self.path.parent)
            except FileNotFoundError as error:
                raise KafkaStorageError(f"{self.path} does not exist") from error

    def delete(self) -> None:
        self._files.remove(self.path)
