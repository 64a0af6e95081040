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
from barnabas.storage.topic_partition import TopicPartition


def initial(options: ReadOptions) -> Progress:
    """
    Where a new stream begins.
    """
    with Cluster(client_of(options)) as cluster:
        return {each: offsets.start for each, offsets in wanted(cluster, options).items()}


def latest(options: ReadOptions) -> Progress:
    """
    Where the partitions end now, as far as they may be read.
    """
    return {each: offsets.end for each, offsets in _there(options, {}).items()}


def _there(options: ReadOptions, known: Progress) -> dict[TopicPartition, OffsetRange]:
    with Cluster(client_of(options)) as cluster:
        return there_now(cluster, options, known)


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
        DataLoss: partitions are gone, or shorter than they were.
    """
    assert max_bytes is None, "the options were parsed"
    ends, waiting = waiting_in(
        options, start, _there(options, start), target=target, max_offsets=max_offsets
    )
    return {**ends, **{partition: offsets.end for partition, offsets in waiting.items()}}


def work_between(options: ReadOptions, start: Progress, end: Progress) -> list[LiveRange]:
    """
    The tasks of one step. What of it was deleted meanwhile, the tasks find.

    Raises:
        DataLoss: a partition came that does not begin with its first offset.
    """
    new = sorted(set(end) - set(start))
    with Cluster(client_of(options)) as cluster:
        starts = readable(cluster, new, 0) if new else {}
    offsets: dict[TopicPartition, OffsetRange] = {}
    for partition, until in end.items():
        since = start.get(partition, 0)
        if partition in starts and starts[partition].start > 0:
            report_loss(
                f"Offsets 0 to {starts[partition].start - 1} of {partition} are gone.", options
            )
            since = starts[partition].start
        offsets[partition] = OffsetRange(since, until)
    return tasks(offsets, options)
