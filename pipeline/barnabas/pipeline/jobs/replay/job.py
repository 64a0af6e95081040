"""
Replaying, as a function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import RESOURCE_TOPIC, AdminClient, ConfigResource
from pyspark.sql import SparkSession

from barnabas.pipeline.errors import UnknownTopic
from barnabas.pipeline.jobs.archive.opening import existing_archive, storage_options
from barnabas.pipeline.jobs.archive.table import ArchiveTable
from barnabas.pipeline.jobs.replay.sending import (
    PATIENCE,
    PartitionToSend,
    ReplayError,
    ReplayTarget,
    replay_partition,
)
from barnabas.pipeline.jobs.replay.watching import watched
from barnabas.pipeline.spark.session import translated
from barnabas.pipeline.spark.shipped import shipped
from barnabas.storage.topic_partition import TopicPartition

RECORDS_PER_TRANSACTION: Final = 10_000


def replay(
    spark: SparkSession | None,
    archive: str | Path | ArchiveTable,
    topic: str,
    bootstrap: str,
    *,
    to: str | None = None,
    client: Mapping[str, str] | None = None,
    records_per_transaction: int = RECORDS_PER_TRANSACTION,
    advanced: Callable[[int], None] | None = None,
) -> dict[TopicPartition, int]:
    """
    Send all partitions of a topic in an archive to the partitions of a topic, which was empty or
    has a beginning of just this; return how many records of each were sent.

    It may be killed at any instant and run again.

    Args:
        spark: None to do it all in this process.
        archive: the directory or URL of one, or one of ``open_table``.
        to: the topic, if it is not to be called as it was.
        client: options of librdkafka, such as those of security.
        advanced: is told now and then how many bytes of the log more were sent.

    Raises:
        ArchiveError: the archive is not whole.
        ReplayError: the topic is not there, or not such that it could have these records.
        JobFailed: a task of Spark failed, be it with one of these, whose sentence it then has.
    """
    there = existing_archive(archive, storage_options({}, spark))
    target = ReplayTarget(bootstrap, to or topic, records_per_transaction, dict(client or {}))
    partitions = partitions_of(there, topic)
    target = checked_target(target, partitions)
    with nullcontext() if advanced is None else watched(partitions, target, advanced):
        if spark is None:
            return {each.topic_partition: replay_partition(each, target) for each in partitions}
        task = shipped(partial(_replay_in_worker, partitions, target))
        numbers = spark.range(0, len(partitions), 1, len(partitions))
        with translated():
            rows = numbers.mapInArrow(task, "number long, sent long").collect()
        return {partitions[row.number].topic_partition: row.sent for row in rows}


def partitions_of(archive: ArchiveTable, topic: str) -> list[PartitionToSend]:
    """
    Raises:
        ArchiveError: the archive of one is not whole.
        UnknownTopic: there are none of that topic.
    """
    there = archive.partitions
    partitions = [
        PartitionToSend(
            each,
            archive.identity_of(each),
            archived.offsets,
            tuple(archive.files_of(each)),
            archive.store,
        )
        for each in there
        if each.topic == topic and (archived := archive.archived(each)) is not None
    ]
    if not partitions:
        topics = ", ".join(sorted({each.topic for each in there})) or "no topic"
        raise UnknownTopic(f"{archive.name} has no {topic}. There is {topics}.")
    return partitions


def checked_target(target: ReplayTarget, partitions: Sequence[PartitionToSend]) -> ReplayTarget:
    """
    Return *target* with the batches that its topic takes.

    Raises:
        ReplayError: the topic is not there, has too few partitions, or gives records times of its
            own.
    """
    admin = AdminClient(target.config)
    resource = ConfigResource(RESOURCE_TOPIC, target.topic)
    needed = 1 + max(each.topic_partition.partition for each in partitions)
    try:
        # A question for its metadata as clients ask it would make the topic.
        (described,) = admin.describe_topics(TopicCollection([target.topic])).values()
        partitions_there = _partitions(described)
        if partitions_there < needed:
            raise ReplayError(f"Make the topic {target.topic} first, with {needed} partitions.")
        (future,) = admin.describe_configs([resource]).values()
        config = future.result(PATIENCE)
    except KafkaException as error:
        raise ReplayError(
            f"{target.bootstrap} does not tell of {target.topic}: {error}."
        ) from error
    if config["message.timestamp.type"].value != "CreateTime":
        raise ReplayError(
            f"{target.topic} has message.timestamp.type=LogAppendTime, and would not keep the times"
            " that records have."
        )
    return replace(target, largest_batch=int(config["max.message.bytes"].value))


def _partitions(described: Future[Any]) -> int:
    """
    How many a topic has; none if there is no such topic.
    """
    try:
        return len(described.result(PATIENCE).partitions)
    except KafkaException as error:
        if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            return 0
        raise


def _replay_in_worker(
    partitions: Sequence[PartitionToSend], target: ReplayTarget, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for number in batch.column(0).to_pylist():
            sent = replay_partition(partitions[number], target)
            yield pa.RecordBatch.from_pydict({"number": [number], "sent": [sent]})
