from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.storage.errors import CorruptCheckpoint
from barnabas.storage.state_files.partition_metadata import (
    PARTITION_METADATA,
    PartitionMetadataFile,
    read_partition_metadata,
    write_partition_metadata,
)
from barnabas.storage.uuids import parse_uuid
from barnabas.testing.disks.memory import MemoryFiles

D = Path("/data/t-0")
ID = parse_uuid("dUHZ4DSIQA2iHFIpYpsSjw")
PATH = D / PARTITION_METADATA


def files_with(content: bytes | None = None) -> MemoryFiles:
    files = MemoryFiles()
    files.make_directory(D)
    if content is not None:
        files.write_atomically(PATH, content)
    return files


def test_partition_metadata_has_two_lines_without_a_final_newline() -> None:
    files = files_with()

    write_partition_metadata(files, D, ID)

    assert b"version: 0\ntopic_id: dUHZ4DSIQA2iHFIpYpsSjw" == files.read_bytes(PATH)
    assert PartitionMetadataFile(0, ID) == read_partition_metadata(files, D)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "Malformed line"),
        (b"version: 0", "Malformed line"),
        (b"version 0\ntopic_id: dUHZ4DSIQA2iHFIpYpsSjw", "Malformed line .*: version 0"),
        (b"version: -1\ntopic_id: dUHZ4DSIQA2iHFIpYpsSjw", "Unrecognized version"),
        (b"version: x\ntopic_id: dUHZ4DSIQA2iHFIpYpsSjw", "Unrecognized version"),
        (b"version: 0\ntopic_id: dUHZ4DSI", "Malformed line .*: topic_id: dUHZ4DSI"),
        (b"version: 0\ntopic_id: a: b", "Malformed line"),
        (b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA", "Invalid topic ID"),
        (b"version: 0\ntopic_id: \xff\xfe", "Malformed line"),
    ],
)
def test_malformed_partition_metadata_is_refused(content: bytes, sentence: str) -> None:
    with pytest.raises(CorruptCheckpoint, match=sentence):
        read_partition_metadata(files_with(content), D)


def test_later_version_of_partition_metadata_is_accepted() -> None:
    content = b"version: 3\r\ntopic_id:  dUHZ4DSIQA2iHFIpYpsSjw\r\nmore: 1\n"

    assert PartitionMetadataFile(3, ID) == read_partition_metadata(files_with(content), D)
