"""
The file that says to which topic a log belongs.
"""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest

from barnabas.storage.errors import CorruptCheckpoint, InconsistentTopicId, KafkaStorageError
from barnabas.storage.state_files.partition_metadata import PartitionMetadata, PartitionMetadataFile
from barnabas.storage.uuids import parse_uuid
from tests.support.disk import CrashableFiles, Crashed, FailingFiles, MemoryFiles

D = Path("/data/t-0")
ID = parse_uuid("dUHZ4DSIQA2iHFIpYpsSjw")
OTHER = UUID(int=7)


def files_with(content: bytes | None = None) -> MemoryFiles:
    files = MemoryFiles()
    files.make_directory(D)
    if content is not None:
        files.write_atomically(D / "partition.metadata", content)
    return files


def test_it_has_two_lines_and_no_newline_at_the_end() -> None:
    """
    Byte for byte as Kafka writes it, and only when it is flushed.
    """
    files = files_with()
    metadata = PartitionMetadataFile(files, D)

    metadata.record(ID)
    assert not metadata.exists()
    metadata.maybe_flush()

    assert b"version: 0\ntopic_id: dUHZ4DSIQA2iHFIpYpsSjw" == files.read_bytes(metadata.path)
    assert PartitionMetadata(0, ID) == metadata.read()


def test_it_is_written_once() -> None:
    """
    The append path asks before every append.
    """
    files = FailingFiles()
    files.make_directory(D)
    metadata = PartitionMetadataFile(files, D)
    metadata.maybe_flush()
    metadata.record(ID)
    metadata.maybe_flush()

    files.fail(forever=True)

    metadata.maybe_flush()


def test_two_ids_for_one_log_are_a_mistake() -> None:
    """
    The same one may come again.
    """
    metadata = PartitionMetadataFile(files_with(), D)
    metadata.record(ID)
    metadata.record(ID)

    with pytest.raises(InconsistentTopicId, match="dUHZ4DSIQA2iHFIpYpsSjw"):
        metadata.record(OTHER)


def test_a_write_that_failed_is_tried_again() -> None:
    """
    The id stays recorded until it is on disk.
    """
    files = FailingFiles()
    files.make_directory(D)
    metadata = PartitionMetadataFile(files, D)
    metadata.record(ID)
    files.fail()

    with pytest.raises(KafkaStorageError):
        metadata.maybe_flush()
    metadata.maybe_flush()

    assert ID == metadata.read().topic_id


def test_it_follows_its_directory() -> None:
    """
    A log that is renamed takes its file along.
    """
    files = files_with()
    metadata = PartitionMetadataFile(files, D)
    metadata.record(ID)
    metadata.maybe_flush()
    renamed = D.with_name("t-0.abc-delete")
    files.rename(D, renamed)

    metadata.update_parent_dir(renamed)

    assert metadata.exists()
    metadata.delete()
    assert not metadata.exists()


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
def test_a_file_that_says_something_else_is_refused(content: bytes, sentence: str) -> None:
    """
    The sentence names the file or quotes the line.
    """
    with pytest.raises(CorruptCheckpoint, match=sentence):
        PartitionMetadataFile(files_with(content), D).read()


def test_a_later_version_is_read() -> None:
    """
    It may say more, but says this too.
    """
    content = b"version: 3\r\ntopic_id:  dUHZ4DSIQA2iHFIpYpsSjw\r\nmore: 1\n"

    assert PartitionMetadata(3, ID) == PartitionMetadataFile(files_with(content), D).read()


def test_a_missing_file_is_a_storage_error() -> None:
    """
    Who reads it has asked before whether it is there.
    """
    with pytest.raises(KafkaStorageError, match="does not exist"):
        PartitionMetadataFile(files_with(), D).read()


@pytest.mark.parametrize("survives", [lambda most: 0, lambda most: most // 2, lambda most: most])
@pytest.mark.parametrize("step", range(6))
def test_after_a_crash_it_is_whole_or_not_there(step: int, survives: object) -> None:
    """
    Wherever the machine stops, and whatever the disk has kept.
    """
    files = CrashableFiles()
    files.make_directory(D)
    metadata = PartitionMetadataFile(files, D)
    metadata.record(ID)
    files.crash_before(step)
    with pytest.raises(Crashed):
        metadata.maybe_flush()

    assert callable(survives)
    files.crash(survives)

    again = PartitionMetadataFile(files, D)
    assert not again.exists() or ID == again.read().topic_id
    again.record(ID)
    again.maybe_flush()
    files.crash()
    assert ID == again.read().topic_id
