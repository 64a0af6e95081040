"""
``partition.metadata``: the id of the topic that a log belongs to.

::

    version: 0
    topic_id: dUHZ4DSIQA2iHFIpYpsSjw

There is no newline at the end. A topic may be deleted and created under the same name, and has
another id then; a log without this file is a stray at the next start (KIP-516).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from uuid import UUID

from barnabas.protocol.structs import NamedTuple
from barnabas.storage.errors import CorruptCheckpoint
from barnabas.storage.fs.interface import Files
from barnabas.storage.uuids import ZERO_UUID, parse_uuid, uuid_text

PARTITION_METADATA: Final = "partition.metadata"
CURRENT_VERSION: Final = 0


class PartitionMetadataFile(NamedTuple):
    """
    The content of the file.
    """

    version: int
    topic_id: UUID


def format_partition_metadata(topic_id: UUID) -> bytes:
    return f"version: {CURRENT_VERSION}\ntopic_id: {uuid_text(topic_id)}".encode()


def read_partition_metadata(files: Files, directory: Path) -> PartitionMetadataFile:
    """
    Read the file of the log in *directory*.

    Raises:
        CorruptCheckpoint: the file is malformed.
        FileNotFoundError: there is no file.
        KafkaStorageError: it cannot be read.
    """
    path = directory / PARTITION_METADATA
    data = files.read_bytes(path)
    known = _known.get(data)
    if known is None:
        known = parse_partition_metadata(data, path)
        # The partitions of a topic have the same content, and follow each other at a start.
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        _known[data] = known
    return known


_MOST_KNOWN: Final = 100
"""Not tuned: a start reads the files of one topic after the other, so that a few suffice."""
_known: Final[dict[bytes, PartitionMetadataFile]] = {}


def write_partition_metadata(files: Files, directory: Path, topic_id: UUID) -> None:
    """
    Write the file of the log in *directory*; it survives a crash when this returns.
    """
    files.write_atomically(directory / PARTITION_METADATA, format_partition_metadata(topic_id))


def parse_partition_metadata(data: bytes, path: Path) -> PartitionMetadataFile:
    """
    Raises:
        CorruptCheckpoint: the file of that *path* is malformed.
    """
    lines = data.decode(errors="replace").splitlines()
    version = _value(lines, 0, path)
    # Later versions may have more fields, and have these.
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
    return PartitionMetadataFile(int(version), topic_id)


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
