"""
Names of files and directories.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.storage.errors import InvalidLogDirectory
from barnabas.storage.state_files import file_names as log_files
from barnabas.storage.state_files.file_names import TopicPartition, parse_topic_partition_name

D = Path("/data/t-0")


def test_names_carry_the_offset_in_twenty_digits() -> None:
    """
    So that their order is that of the offsets.
    """
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


def test_the_offset_is_what_stands_before_the_first_dot() -> None:
    """
    Whatever follows.
    """
    assert 42 == log_files.offset_from_file_name("00000000000000000042.index.deleted")
    with pytest.raises(ValueError, match="notes"):
        log_files.offset_from_file_name("notes.txt")


def test_the_end_of_a_name_is_the_kind_of_the_file() -> None:
    """
    A file that is about to be deleted is of no kind.
    """
    assert log_files.is_log_file("00000000000000000042.log")
    assert not log_files.is_log_file("00000000000000000042.log.deleted")
    for suffix in ("index", "timeindex", "txnindex"):
        assert log_files.is_index_file(f"00000000000000000042.{suffix}")
    assert not log_files.is_index_file("00000000000000000042.snapshot")


def test_a_suffix_is_replaced_only_where_it_is() -> None:
    """
    Renaming a file that is not named as thought is a mistake.
    """
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
def test_a_directory_tells_its_partition(name: str, partition: TopicPartition) -> None:
    """
    Topic and partition are split at the last dash; marks of the directory are left aside.
    """
    assert partition == parse_topic_partition_name(Path("/data") / name)


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
def test_any_other_directory_is_refused_in_kafkas_words(name: str) -> None:
    """
    A broker does not start on a directory of which it does not know what it is.
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
def test_marked_directories_have_a_name_of_their_own(make: object, suffix: str, topic: str) -> None:
    """
    Two of them for one partition differ; a long topic is cut so that the name stays legal.
    """
    assert callable(make)
    partition = TopicPartition(topic, 3)

    first, second = make(partition), make(partition)

    assert first != second
    assert len(first) <= 255
    parsed = parse_topic_partition_name(Path("/data") / first)
    assert 3 == parsed.partition
    assert topic.startswith(parsed.topic)
    assert first.endswith(suffix)


def test_a_plain_directory_is_named_after_its_partition() -> None:
    """
    And back.
    """
    partition = TopicPartition("a-b", 12)

    assert "a-b-12" == log_files.log_dir_name(partition)
    assert partition == parse_topic_partition_name(Path("/data/a-b-12"))
