from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from barnabas.coordination.cluster.errors import UnknownMetadataRecord
from barnabas.protocol.errors import CorruptMessage
from barnabas.protocol.internal_topics import metadata_records as records
from barnabas.protocol.records.batch import CRC_AT, batches
from barnabas.server.cluster.formatting import (
    default_bootstrap,
    prepare_directories,
    read_bootstrap,
)
from barnabas.storage.errors import InvalidLogDirectory, LaterCheckpoint
from barnabas.storage.state_files.meta_properties import MetaProperties, read_meta_properties
from barnabas.testing.disks.crashable import CrashableFiles
from barnabas.testing.disks.memory import MemoryFiles
from tests.support.crash.points import crash_images
from tests.support.some import some

A, B = Path("/a"), Path("/b")


def prepare(
    files: MemoryFiles, *log_dirs: Path, node_id: int = 1, cluster_id: str | None = None
) -> str:
    return prepare_directories(
        log_dirs,
        metadata_dir=log_dirs[0],
        node_id=node_id,
        cluster_id=cluster_id,
        files=files,
        now_ms=1_700_000_000_000,
    )


def properties(files: MemoryFiles, log_dir: Path) -> MetaProperties:
    return read_meta_properties(files, log_dir / "meta.properties")


def test_new_directories_are_formatted() -> None:
    files = MemoryFiles()

    cluster_id = prepare(files, A, B)

    assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]{21}", cluster_id)
    first, second = properties(files, A), properties(files, B)
    assert {(1, cluster_id, 1)} == {(m.version, m.cluster_id, m.node_id) for m in (first, second)}
    assert None not in (first.directory_id, second.directory_id)
    assert first.directory_id != second.directory_id
    for log_dir in (A, B):
        assert default_bootstrap() == read_bootstrap(log_dir, files)


def test_bootstrap_records_are_those_of_kafka_4_3() -> None:
    # metadata.version comes first, the others by name.
    assert [
        ("metadata.version", 30),
        ("eligible.leader.replicas.version", 1),
        ("group.version", 1),
        ("share.version", 1),
        ("streams.version", 1),
        ("transaction.version", 2),
    ] == [
        (record.name, record.feature_level)
        for record, _ in default_bootstrap()
        if isinstance(record, records.FeatureLevelRecord)
    ]


def test_formatted_directories_are_unchanged_by_a_second_start() -> None:
    files = MemoryFiles()
    cluster_id = prepare(files, A)
    before = files.read_bytes(A / "meta.properties")

    assert cluster_id == prepare(files, A, B)

    assert before == files.read_bytes(A / "meta.properties")
    assert cluster_id == properties(files, B).cluster_id


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"cluster_id": "other"}, "Expected other, but read my-cluster"),
        ({"node_id": 2}, "Stored node id 1 doesn't match"),
    ],
)
def test_directory_of_another_cluster_or_node_is_refused(
    changed: dict[str, Any], sentence: str
) -> None:
    files = MemoryFiles()
    assert "my-cluster" == prepare(files, A, cluster_id="my-cluster")

    with pytest.raises(InvalidLogDirectory, match=sentence):
        prepare(files, A, **changed)


def test_metadata_log_directory_with_unreadable_meta_properties_is_refused() -> None:
    # In any other directory only its logs go offline, as in Kafka.
    files = MemoryFiles()
    prepare(files, A, B)
    later = files.read_bytes(A / "meta.properties").replace(b"version=1", b"version=2")
    files.write_atomically(A / "meta.properties", later)

    with pytest.raises(LaterCheckpoint, match=r"version number 2\. A later version of Barnabas"):
        prepare(files, A, B)
    prepare(files, B, A)

    assert later == files.read_bytes(A / "meta.properties")


HOLDS = "no meta.properties, but it holds {}"


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        *((name, HOLDS.format(name)) for name in ("orders-0", "__cluster_metadata-0")),
        ("orders-1.0a-delete", HOLDS.format("orders-1.0a-delete")),
        # A new file system has its own directories.
        ("lost+found", "'lost\\+found' is not in the form"),
    ],
)
def test_logs_without_meta_properties_do_not_count_as_a_new_directory(
    name: str, sentence: str
) -> None:
    # In a new cluster they would be strays: a lost meta.properties must not lose the logs too.
    files = MemoryFiles()
    files.make_directory(A / name)

    with pytest.raises(InvalidLogDirectory, match=sentence):
        prepare(files, A)

    assert [name] == files.names(A)


def test_remote_log_cache_does_not_prevent_formatting() -> None:
    files = MemoryFiles()
    files.make_directory(A / "remote-log-index-cache")

    prepare(files, A)

    assert 1 == properties(files, A).node_id


def test_missing_bootstrap_checkpoint_is_replaced_by_the_default() -> None:
    files = MemoryFiles()
    files.make_directory(A)

    assert default_bootstrap() == read_bootstrap(A, files)


def flip_bit(files: MemoryFiles, position: int) -> None:
    path = A / "bootstrap.checkpoint"
    content = bytearray(files.read_bytes(path))
    content[position] ^= 1
    files.write_atomically(path, bytes(content))


def test_wrong_checksum_of_the_bootstrap_checkpoint_is_ignored(
    caplog: pytest.LogCaptureFixture,
) -> None:
    # Apache Kafka does not verify it.
    files = MemoryFiles()
    prepare(files, A)
    for batch in list(batches(files.read_bytes(A / "bootstrap.checkpoint"))):
        flip_bit(files, batch.position + CRC_AT)

    assert default_bootstrap() == read_bootstrap(A, files)
    assert "/a/bootstrap.checkpoint: the batch at 0 does not match its checksum" in caplog.text


def test_unreadable_bootstrap_checkpoint_is_an_error_that_names_the_file() -> None:
    # It may hold more than the default, such as SCRAM credentials.
    files = MemoryFiles()
    prepare(files, A)
    refused = []
    for position in range(len(files.read_bytes(A / "bootstrap.checkpoint"))):
        flip_bit(files, position)
        try:
            read_bootstrap(A, files)
        except (CorruptMessage, UnknownMetadataRecord) as error:
            refused.append(str(error))
        flip_bit(files, position)

    assert len(refused) > 10
    assert all(sentence.startswith("/a/bootstrap.checkpoint") for sentence in some(refused))


def test_interrupted_formatting_is_completed_by_the_next_start() -> None:
    files = CrashableFiles()

    with crash_images(files) as images:
        prepare(files, A, B)

    assert len(images) > 5
    for image in some(images):
        again = CrashableFiles(image=image)
        prepare(again, A, B)
        assert properties(again, A).cluster_id == properties(again, B).cluster_id
        assert default_bootstrap() == read_bootstrap(A, again)
