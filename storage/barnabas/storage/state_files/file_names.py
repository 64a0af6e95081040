"""
The names of files and directories (Kafka's LogFileUtils and UnifiedLog).

::

    <log dir>/<topic>-<partition>/00000000000000000042.log
                                  00000000000000000042.index.deleted
    <log dir>/<topic>-<partition>.<32 hex>-delete/
"""

from __future__ import annotations

import os
import re
import sys
import uuid
from functools import lru_cache
from pathlib import Path
from typing import Final

from barnabas.storage.errors import InvalidLogDirectory
from barnabas.storage.topic_partition import TopicPartition

LOG_SUFFIX: Final = ".log"
INDEX_SUFFIX: Final = ".index"
TIME_INDEX_SUFFIX: Final = ".timeindex"
TXN_INDEX_SUFFIX: Final = ".txnindex"
PRODUCER_SNAPSHOT_SUFFIX: Final = ".snapshot"

DELETED_SUFFIX: Final = ".deleted"
CLEANED_SUFFIX: Final = ".cleaned"
SWAP_SUFFIX: Final = ".swap"
SET_ASIDE_SUFFIX: Final = ".set-aside"
"""Segments that recovery has taken out of a log. No broker reads or removes them."""

DELETE_DIR_SUFFIX: Final = "-delete"
FUTURE_DIR_SUFFIX: Final = "-future"
STRAY_DIR_SUFFIX: Final = "-stray"

REMOTE_LOG_INDEX_CACHE: Final = "remote-log-index-cache"
"""A directory of Kafka's tiered storage; no log."""
CLUSTER_METADATA_TOPIC: Final = "__cluster_metadata"

LONGEST_FILE_NAME: Final = 255
"""Bytes, on most file systems."""
_MARKED: Final = re.compile(r"(\S+)-(\S+)\.(\S+)(?:-delete|-future|-stray)")


def offset_from_file_name(name: str) -> int:
    """
    The offset in the name of a segment's file or a snapshot: all before the first dot.

    Raises:
        ValueError: that is no number.
    """
    return int(name[: name.index(".")])


def log_file_name(offset: int) -> str:
    return f"{offset:020d}{LOG_SUFFIX}"


# Most logs have one segment, at offset 0: they share the names of its files.


@lru_cache
def offset_index_name(offset: int, suffix: str = "") -> str:
    return f"{offset:020d}{INDEX_SUFFIX}{suffix}"


@lru_cache
def time_index_name(offset: int, suffix: str = "") -> str:
    return f"{offset:020d}{TIME_INDEX_SUFFIX}{suffix}"


@lru_cache
def transaction_index_name(offset: int, suffix: str = "") -> str:
    return f"{offset:020d}{TXN_INDEX_SUFFIX}{suffix}"


def log_file(directory: Path, offset: int, suffix: str = "") -> Path:
    return directory / f"{log_file_name(offset)}{suffix}"


def offset_index_file(directory: Path, offset: int, suffix: str = "") -> Path:
    return directory / offset_index_name(offset, suffix)


def time_index_file(directory: Path, offset: int, suffix: str = "") -> Path:
    return directory / time_index_name(offset, suffix)


def transaction_index_file(directory: Path, offset: int, suffix: str = "") -> Path:
    return directory / transaction_index_name(offset, suffix)


def producer_snapshot_file(directory: Path, offset: int) -> Path:
    return directory / f"{offset:020d}{PRODUCER_SNAPSHOT_SUFFIX}"


def is_log_file(name: str) -> bool:
    return name.endswith(LOG_SUFFIX)


def is_index_file(name: str) -> bool:
    return name.endswith((INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX))


def replace_suffix(path: Path, old: str, new: str) -> Path:
    """
    Raises:
        ValueError: *path* does not end in *old*.
    """
    if not path.name.endswith(old):
        raise ValueError(f"Expected {path} to end with {old}")
    return path.with_name(path.name[: len(path.name) - len(old)] + new)


def log_dir_of(directory: Path) -> Path:
    """
    The log directory that the *directory* of a log lies in: one object for all its logs.
    """
    return _shared_path(os.path.dirname(str(directory)))


@lru_cache
def _shared_path(path: str) -> Path:
    return Path(path)


def log_dir_name(partition: TopicPartition) -> str:
    return str(partition)


def log_delete_dir_name(partition: TopicPartition) -> str:
    """
    A name for a log that is to be deleted; long topics are cut so that the name is legal.
    """
    return _marked_name(partition, DELETE_DIR_SUFFIX)


def log_stray_dir_name(partition: TopicPartition) -> str:
    """
    A name for a log that the metadata does not know; long topics are cut.
    """
    return _marked_name(partition, STRAY_DIR_SUFFIX)


def has_future_dir_name(partition: TopicPartition) -> bool:
    """
    Whether there is a legal name for a log that is on its way into another directory: it is not
    cut, as the partition would not be known from it.
    """
    ending = len(f"-{partition.partition}.") + len(uuid.UUID(int=0).hex) + len(FUTURE_DIR_SUFFIX)
    return len(partition.topic) + ending <= LONGEST_FILE_NAME


def _marked_name(partition: TopicPartition, suffix: str) -> str:
    ending = f"-{partition.partition}.{uuid.uuid4().hex}{suffix}"
    return partition.topic[: LONGEST_FILE_NAME - len(ending)] + ending


def parse_topic_partition_name(directory: Path) -> TopicPartition:
    """
    The partition whose log *directory* holds, whatever the directory is marked as.

    Raises:
        InvalidLogDirectory: the name is not one of a partition.
    """
    name = directory.name
    if name.endswith((DELETE_DIR_SUFFIX, FUTURE_DIR_SUFFIX, STRAY_DIR_SUFFIX)):
        if not _MARKED.fullmatch(name):
            raise _not_a_partition(directory)
        name = name[: name.rindex(".")]
    topic, dash, partition = name.rpartition("-")
    if not dash or not topic or not re.fullmatch(r"[+-]?[0-9]+", partition):
        raise _not_a_partition(directory)
    number = int(partition)
    if not -(2**31) <= number < 2**31:
        raise _not_a_partition(directory)
    # All partitions of a topic share its name.
    return TopicPartition(sys.intern(topic), number)


def _not_a_partition(directory: Path) -> InvalidLogDirectory:
    return InvalidLogDirectory(
        f"Found directory {directory}, '{directory.name}' is not in the form of topic-partition or "
        "topic-partition.uniqueId-delete (if marked for deletion).\n"
        "Kafka's log directories (and children) should only contain Kafka topic data.",
        path=directory,
    )
