"""
How far a stream from a broker may go in its next step; the rules are those of Spark's connector.
"""

from __future__ import annotations

from barnabas.client.cluster import Cluster
from barnabas.pipeline.decoding.decode import OffsetRange
from barnabas.pipeline.live.plan import LiveRange, client_of, tasks
from barnabas.pipeline.live.topics import readable, there_now, wanted
from barnabas.pipeline.options import ReadOptions
from barnabas.pipeline.reading.plan import report_loss
from barnabas.pipeline.reading.stream_plan import Progress, waiting_in
from barnabas.pipeline.topic_ids import confirmed_ids
from barnabas.storage.topic_partition import TopicPartition


def initial(options: ReadOptions) -> Progress:
    """
    Where a new stream begins.
    """
    with Cluster(client_of(options)) as cluster:
        offsets, topic_ids = wanted(cluster, options)
    return Progress({each: some.start for each, some in offsets.items()}, topic_ids)


def latest(options: ReadOptions) -> Progress:
    """
    Where the partitions end now, as far as they may be read.
    """
    with Cluster(client_of(options)) as cluster:
        there, topic_ids = there_now(cluster, options, Progress({}))
    return Progress({each: offsets.end for each, offsets in there.items()}, topic_ids)


def admit(
    options: ReadOptions,
    start: Progress,
    *,
    target: Progress | None,
    max_offsets: int | None,
    max_bytes: int | None = None,
) -> Progress:
    """
    Where the next step ends.

    Args:
        target: not to be passed; nor are partitions read that are not in it.
        max_offsets: of all partitions together.
        max_bytes: None, as a broker does not say how many bytes its records take.

    Raises:
        DataLoss: partitions are gone, shorter than they were, or of a topic created again.
    """
    assert max_bytes is None, "the options were parsed"
    with Cluster(client_of(options)) as cluster:
        there, topic_ids = there_now(cluster, options, start)
    since = start.still_there(topic_ids, options)
    aim = None if target is None else target.of_same_topics(topic_ids)
    ends, waiting = waiting_in(options, since, there, target=aim, max_offsets=max_offsets)
    ends = {**ends, **{partition: offsets.end for partition, offsets in waiting.items()}}
    return start.advanced(ends, topic_ids)


def work_between(options: ReadOptions, start: Progress, end: Progress) -> list[LiveRange]:
    """
    The tasks of one step. What of it was deleted meanwhile, the tasks find.

    Raises:
        DataLoss: a topic was created again, or a partition came that does not begin with its first
            offset.
    """
    with Cluster(client_of(options)) as cluster:
        starting = start.still_there(end.topic_ids, options)
        topic_ids = confirmed_ids(cluster, end.topic_ids)
        ending = end.still_there(topic_ids, options)
        new = sorted(ending.keys() - starting.keys())
        starts = readable(cluster, new, 0) if new else {}
    offsets: dict[TopicPartition, OffsetRange] = {}
    for partition, until in ending.items():
        since = starting.get(partition, 0)
        if partition in starts and starts[partition].start > 0:
            report_loss(
                f"Offsets 0 to {starts[partition].start - 1} of {partition} are gone.", options
            )
            since = starts[partition].start
        offsets[partition] = OffsetRange(since, until)
    return tasks(offsets, options, end.topic_ids)
