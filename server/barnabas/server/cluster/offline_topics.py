"""
The topics of the cluster, read from the files of its metadata log without opening it.

For tools that read a log directory, possibly of a running broker: no file is created or changed,
and an incomplete batch is not read.
"""

from __future__ import annotations

from barnabas.coordination.cluster.image import ConfigResourceType, MetadataImage, Topic
from barnabas.coordination.cluster.replay import Replay
from barnabas.protocol.errors import KafkaError
from barnabas.server.cluster.snapshots import find_snapshots, read_snapshot
from barnabas.storage.readonly.log_root import LogRoot
from barnabas.storage.readonly.partition import PartitionDirectory
from barnabas.storage.verify.cluster import KnownTopic, KnownTopics


def read_image(log: PartitionDirectory) -> MetadataImage:
    """
    The sum of the latest snapshot and the records behind it.

    Raises:
        CorruptMessage, InconsistentMetadata: the log is damaged.
        UnknownMetadataRecord, UnsupportedFeatureLevel: a later release wrote it.
        FileNotFoundError: a running broker has removed a file.
    """
    snapshots = find_snapshots(log.path, log.files).complete
    replay, start = Replay(), 0
    if snapshots:
        latest = snapshots[-1]
        replay, start = read_snapshot(latest.path(log.path), log.files), latest.end_offset
    for segment in log.segments:
        for _, batch in segment.batches():
            if batch.base_offset >= start:
                replay.batch(batch)
    return replay.image


def read_topics(root: LogRoot) -> KnownTopics | None:
    """
    The topics by name; None if the metadata log is not in *root*, or cannot be read.
    """
    log = root.cluster_metadata
    if log is None:
        return None
    try:
        image = read_image(log)
    except (KafkaError, FileNotFoundError):
        return None
    return {name: _known(topic, image) for name, topic in image.topics_by_name.items()}


def _known(topic: Topic, image: MetadataImage) -> KnownTopic:
    return KnownTopic(
        topic.id,
        image.config(ConfigResourceType.TOPIC, topic.name),
        {
            number: dict(zip(partition.replicas, partition.directories, strict=True))
            for number, partition in topic.partitions.items()
        },
    )
