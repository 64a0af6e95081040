"""
The logs in the directories of a node, compared with the metadata of the cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from uuid import UUID

from barnabas.protocol.structs import fresh, struct
from barnabas.storage.errors import CorruptCheckpoint
from barnabas.storage.readonly.log_root import LogRoot
from barnabas.storage.readonly.partition import PartitionDirectory
from barnabas.storage.state_files.file_names import CLUSTER_METADATA_TOPIC, STRAY_DIR_SUFFIX
from barnabas.storage.state_files.partition_metadata import PARTITION_METADATA
from barnabas.storage.uuids import uuid_text
from barnabas.storage.verify import invariants
from barnabas.storage.verify.report import FileReport, Sink


@struct
class KnownTopic:
    """
    A topic in the metadata.
    """

    topic_id: UUID
    configs: Mapping[str, str] = fresh(factory=dict)
    """The settings of the topic itself."""
    replicas: Mapping[int, Mapping[int, UUID]] = fresh(factory=dict)
    """For each partition, the ids of the log directories on the nodes that have it, by node."""


KnownTopics = Mapping[str, KnownTopic]
ReadTopics = Callable[[LogRoot], KnownTopics | None]
"""
Reads the metadata log in a log directory; None if it is missing or cannot be read.
"""


def check_topics(
    topics: KnownTopics, roots: Iterable[LogRoot], node_id: int | None, add: Sink, *, clean: bool
) -> None:
    """
    Compare the logs of one node.

    Args:
        roots: the known log directories of the node; it may have others.
        clean: whether the broker was stopped cleanly, so that no change is unfinished.
    """
    found: set[tuple[str, int]] = set()
    directory_ids: dict[UUID, Path] = {}
    for root in roots:
        try:
            meta = root.meta_properties
        except CorruptCheckpoint:
            meta = None
        if meta is not None and meta.directory_id is not None:
            directory_ids[meta.directory_id] = root.path
        for partition in root.partitions:
            name = partition.topic_partition
            if partition.mark == STRAY_DIR_SUFFIX:
                FileReport(add, partition.path).add(
                    invariants.STRAY_LOG, "a log that was put aside as a stray", "none"
                )
            elif partition.mark == "":
                found.add((name.topic, name.partition))
                _check_log(partition, topics.get(name.topic), node_id, add)
    for topic_name, topic in topics.items():
        for number, replicas in topic.replicas.items():
            directory = None if node_id is None else replicas.get(node_id)
            path = None if directory is None else directory_ids.get(directory)
            if path is not None and (topic_name, number) not in found:
                FileReport(add, path / f"{topic_name}-{number}").add(
                    invariants.LOG_MISSING,
                    "no directory",
                    "the log of the partition",
                    mended=not clean,
                )


def _check_log(
    partition: PartitionDirectory, topic: KnownTopic | None, node_id: int | None, add: Sink
) -> None:
    name = partition.topic_partition
    assert name.topic != CLUSTER_METADATA_TOPIC, "the partitions of a root are those of topics"
    try:
        metadata = partition.partition_metadata
    except CorruptCheckpoint:
        return
    if topic is None or name.partition not in topic.replicas:
        FileReport(add, partition.path).add(
            invariants.STRAY_LOG, "a log", "a partition that the metadata knows"
        )
    elif node_id is not None and node_id not in topic.replicas[name.partition]:
        nodes = ", ".join(map(str, topic.replicas[name.partition]))
        FileReport(add, partition.path).add(
            invariants.STRAY_LOG, f"a log of node {node_id}", f"one of the nodes {nodes}"
        )
    elif metadata is not None and metadata.topic_id != topic.topic_id:
        FileReport(add, partition.path / PARTITION_METADATA).add(
            invariants.TOPIC_ID, uuid_text(metadata.topic_id), uuid_text(topic.topic_id)
        )
