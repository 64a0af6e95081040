from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest

from barnabas.storage.errors import CorruptCheckpoint, InvalidLogDirectory
from barnabas.storage.state_files import meta_properties
from barnabas.storage.state_files.meta_properties import (
    MetaProperties,
    MetaPropertiesEnsemble,
    format_meta_properties,
    is_reserved,
    parse_meta_properties,
    random_directory_id,
    read_meta_properties,
)
from barnabas.storage.uuids import parse_uuid
from barnabas.testing.disks.failing import FailingFiles
from barnabas.testing.disks.memory import MemoryFiles

A, B, C = Path("/a"), Path("/b"), Path("/c")
FILE = Path("/a/meta.properties")
CLUSTER = "AAAAAAAAAAAAAAAAAAAAAQ"
FIRST, SECOND = parse_uuid("PuHEQjpYM29Eajn0xJLqOQ"), parse_uuid("Fw1kXoKQTLyqNqcrYFhS8A")
NOW_MS = 1_795_227_736_000

KAFKAS = b"""#
#Sat Nov 21 02:22:16 UTC 2026
node.id=1
directory.id=PuHEQjpYM29Eajn0xJLqOQ
version=1
cluster.id=AAAAAAAAAAAAAAAAAAAAAQ
"""
META = MetaProperties(cluster_id=CLUSTER, node_id=1, directory_id=FIRST)


def disk(**contents: bytes | None) -> MemoryFiles:
    files = MemoryFiles()
    for name, content in contents.items():
        files.make_directory(Path("/") / name)
        if content is not None:
            files.write_atomically(Path("/") / name / "meta.properties", content)
    return files


def ensemble(**contents: bytes | None) -> MetaPropertiesEnsemble:
    return MetaPropertiesEnsemble(disk(**contents), [Path("/") / name for name in contents])


def test_meta_properties_has_kafkas_bytes() -> None:
    meta = parse_meta_properties(KAFKAS, FILE)

    assert META == meta
    assert KAFKAS == format_meta_properties(meta, NOW_MS)


def test_meta_properties_may_be_edited_by_hand() -> None:
    """
    Every syntax of Java properties files is accepted.
    """
    text = b"""! moved on Monday
version : 1
  node.id=  1
cluster.id = AAAAAAAAAAA\\
  AAAAAAAAAAQ
directory.\\u0069d PuHEQjpYM29Eajn0xJLqOQ
"""

    assert META == parse_meta_properties(text, FILE)


def test_meta_properties_version_0_requires_no_field() -> None:
    """
    A missing version counts as 0; the node id is called ``broker.id`` there.
    """
    assert MetaProperties(version=0) == parse_meta_properties(b"", FILE)
    text = b"broker.id=30\nnode.id=4\n"
    assert MetaProperties(version=0, node_id=30) == parse_meta_properties(text, FILE)
    assert (
        b"broker.id=3\nversion=0\n"
        == (format_meta_properties(MetaProperties(version=0, node_id=3), 0).split(b"1970\n")[1])
    )


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("version=2\ncluster.id=c\nnode.id=1", "Unknown meta.properties version number 2"),
        ("version=x", "Invalid meta.properties version string 'x'"),
        ("version=1\nnode.id=1", "cluster.id was not found."),
        ("version=1\ncluster.id=c", "Failed to find node.id"),
        ("version=1\ncluster.id=c\nnode.id=one", "Unable to read node.id as a base-10 number."),
        ("version=1\ncluster.id=c\nnode.id=1\ndirectory.id=x", "'x'"),
        ("cluster.id=\\u12", "uXXXX"),
    ],
)
def test_malformed_meta_properties_are_refused(text: str, sentence: str) -> None:
    with pytest.raises(CorruptCheckpoint) as refusal:
        parse_meta_properties(text.encode(), FILE)

    assert sentence in str(refusal.value)
    assert str(FILE) in str(refusal.value)


def test_directory_id_is_never_a_reserved_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Reserved are the first hundred ids; as Kafka compares signed numbers, also every id whose upper
    half is 0.
    """
    assert is_reserved(UUID(int=0))
    assert is_reserved(UUID(int=99))
    assert not is_reserved(UUID(int=100))
    assert is_reserved(UUID(int=2**64 - 1))
    assert not is_reserved(UUID(int=2**64))
    candidates = [UUID(int=2), FIRST]
    monkeypatch.setattr(meta_properties, "random_uuid", lambda: candidates.pop(0))
    assert FIRST == random_directory_id()


def test_directories_are_classified_by_their_meta_properties() -> None:
    directories = ensemble(a=KAFKAS, b=None, c=b"version=7")

    assert {A: META} == directories.properties
    assert ([B], [C]) == (directories.empty, [*directories.failed])
    assert (CLUSTER, 1) == (directories.cluster_id, directories.node_id)


def test_directory_on_a_failed_disk_does_not_count_as_empty() -> None:
    """
    An empty directory would be formatted.
    """
    files = FailingFiles()
    files.make_directory(A)
    files.fail(only=frozenset({"read"}))

    directories = MetaPropertiesEnsemble(files, [A])

    assert ([], [A]) == (directories.empty, [*directories.failed])


def test_directories_without_meta_properties_have_neither_cluster_nor_node_id() -> None:
    directories = ensemble(a=None)

    assert (None, None) == (directories.cluster_id, directories.node_id)
    directories.verify("any", 7)


@pytest.mark.parametrize(
    ("other", "cluster", "node", "sentence"),
    [
        (b"", None, None, None),
        (KAFKAS.replace(b"PuHE", b"Fw1k"), None, None, None),
        (KAFKAS.replace(b"PuHE", b"Fw1k"), CLUSTER, 1, None),
        (KAFKAS, None, None, "Duplicate directory ID PuHEQjpYM29Eajn0xJLqOQ found"),
        (KAFKAS.replace(b"AQ", b"Ag"), None, None, "Invalid cluster.id in: /b/meta.properties"),
        (KAFKAS.replace(b"node.id=1", b"node.id=2"), None, None, "Stored node id 2 doesn't match"),
        (b"", "other", None, "Expected other, but read AAAAAAAAAAAAAAAAAAAAAQ"),
        (b"", None, 5, "Stored node id 1 doesn't match previous node id 5 in /a"),
        (b"directory.id=AAAAAAAAAAAAAAAAAAAAAg", None, None, "Invalid reserved directory ID"),
    ],
)
def test_directories_must_share_cluster_and_node_id_and_have_distinct_ids(
    other: bytes, cluster: str | None, node: int | None, sentence: str | None
) -> None:
    directories = ensemble(a=KAFKAS, b=other)

    if sentence is None:
        directories.verify(cluster, node)
        return
    with pytest.raises(InvalidLogDirectory, match=sentence):
        directories.verify(cluster, node)


def test_missing_meta_properties_and_directory_ids_are_added(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    without_id = KAFKAS.replace(b"directory.id=PuHEQjpYM29Eajn0xJLqOQ\n", b"")
    files = disk(a=without_id, b=None, c=b"version=7", d=KAFKAS)
    directories = MetaPropertiesEnsemble(files, [A, B, C, Path("/d")])
    ids = [SECOND, UUID(int=2**100)]
    monkeypatch.setattr(meta_properties, "random_uuid", lambda: ids.pop(0))

    directories.complete(CLUSTER, 1, NOW_MS)

    directories.verify(CLUSTER, 1)
    assert SECOND == read_meta_properties(files, B / "meta.properties").directory_id
    assert UUID(int=2**100) == read_meta_properties(files, FILE).directory_id
    assert b"version=7" == files.read_bytes(C / "meta.properties")
    assert KAFKAS == files.read_bytes(Path("/d/meta.properties"))
    assert ([], [C]) == (directories.empty, [*directories.failed])


def test_meta_properties_version_0_are_upgraded_to_version_1() -> None:
    files = disk(a=b"broker.id=1\ndirectory.id=PuHEQjpYM29Eajn0xJLqOQ\n")

    MetaPropertiesEnsemble(files, [A]).complete(CLUSTER, 1, NOW_MS)

    assert KAFKAS == files.read_bytes(FILE)
