from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.storage.errors import InvalidLogDirectory
from barnabas.storage.state_files import file_names as log_files
from barnabas.storage.state_files.file_names import parse_topic_partition_name
from barnabas.storage.topic_partition import TopicPartition

D = Path("/data/t-0")


def test_file_name_has_the_offset_in_twenty_digits() -> None:
    assert [
        "00000000000000000042.log",
        "00000000000000000042.index.deleted",
        "00000000000000000042.timeindex.swap",
        "00000000000000000042.txnindex.cleaned",
        "00000000000000000042.snapshot",
        "09223372036854775807.log",
    ] == [
        log_files.log_file(D, 42).name,
        log_files.offset_index_file(D, 42, ".deleted").name,
        log_files.time_index_file(D, 42, ".swap").name,
        log_files.transaction_index_file(D, 42, ".cleaned").name,
        log_files.producer_snapshot_file(D, 42).name,
        log_files.log_file(D, 2**63 - 1).name,
    ]


def test_offset_of_a_file_name_ends_at_the_first_dot() -> None:
    assert 42 == log_files.offset_from_file_name("00000000000000000042.index.deleted")
    with pytest.raises(ValueError, match="notes"):
        log_files.offset_from_file_name("notes.txt")


def test_suffix_of_a_file_name_tells_its_type() -> None:
    assert log_files.is_log_file("00000000000000000042.log")
    assert not log_files.is_log_file("00000000000000000042.log.deleted")
    for suffix in ("index", "timeindex", "txnindex"):
        assert log_files.is_index_file(f"00000000000000000042.{suffix}")
    assert not log_files.is_index_file("00000000000000000042.snapshot")


def test_replacing_a_missing_suffix_is_an_error() -> None:
    path = log_files.log_file(D, 0, ".cleaned")

    assert log_files.log_file(D, 0, ".swap") == log_files.replace_suffix(path, ".cleaned", ".swap")
    assert log_files.log_file(D, 0) == log_files.replace_suffix(path, ".cleaned", "")
    with pytest.raises(ValueError, match=r"to end with \.swap"):
        log_files.replace_suffix(path, ".swap", "")


@pytest.mark.parametrize(
    ("name", "partition"),
    [
        ("t-0", TopicPartition("t", 0)),
        ("a-b.c_d-17", TopicPartition("a-b.c_d", 17)),
        ("t-0.0123456789abcdef0123456789abcdef-delete", TopicPartition("t", 0)),
        ("a.b-c-3.0123456789abcdef0123456789abcdef-stray", TopicPartition("a.b-c", 3)),
        ("t-0.0123456789abcdef0123456789abcdef-future", TopicPartition("t", 0)),
        ("__cluster_metadata-0", TopicPartition("__cluster_metadata", 0)),
    ],
)
def test_directory_name_gives_the_partition(name: str, partition: TopicPartition) -> None:
    assert partition == parse_topic_partition_name(Path("/data") / name)
    assert log_files.log_dir_name(partition) == name.partition(f".{'0123456789abcdef' * 2}")[0]


@pytest.mark.parametrize(
    "name",
    [
        "lost+found",
        "t",
        "t-",
        "-0",
        "t-x",
        "t-1_0",
        "t-2147483648",
        "t-0-delete",
        "t-0.-delete",
        "t.0123-stray",
        "t-0.0123 4567-delete",
    ],
)
def test_unknown_directory_is_refused_with_kafkas_message(name: str) -> None:
    """
    A broker does not start with a directory that it cannot identify.
    """
    path = Path("/data") / name

    with pytest.raises(InvalidLogDirectory) as refusal:
        parse_topic_partition_name(path)

    assert path == refusal.value.path
    assert str(refusal.value).startswith(
        f"Found directory {path}, '{name}' is not in the form of topic-partition or "
        "topic-partition.uniqueId-delete (if marked for deletion)."
    )


@pytest.mark.parametrize(
    ("make", "suffix"),
    [(log_files.log_delete_dir_name, "-delete"), (log_files.log_stray_dir_name, "-stray")],
)
@pytest.mark.parametrize("topic", ["t", "x" * 249])
def test_marked_directory_has_a_unique_name(make: object, suffix: str, topic: str) -> None:
    assert callable(make)
    partition = TopicPartition(topic, 3)

    first, second = make(partition), make(partition)

    assert first != second
    assert len(first) <= 255
    parsed = parse_topic_partition_name(Path("/data") / first)
    assert 3 == parsed.partition
    assert topic.startswith(parsed.topic)
    assert first.endswith(suffix)
