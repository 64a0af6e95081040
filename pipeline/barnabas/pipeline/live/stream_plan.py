"""
How far a stream from a broker may go in its next step; the rules are those of Spark's connector.
"""

from __future__ import annotations

from barnabas.pipeline.client.cluster import Cluster
from barnabas.pipeline.decoding.decode import Offsets
from barnabas.pipeline.live.plan import LiveRange, client_of, tasks
from barnabas.pipeline.live.topics import isolation_of, partitions_of, readable, wanted
from barnabas.pipeline.options import ReadOptions
from barnabas.pipeline.reading.plan import report_loss
from barnabas.pipeline.reading.stream_plan import Progress, by_count, share_out
from barnabas.storage.state_files.file_names import TopicPartition


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
    return {each: offsets.end for each, offsets in _there(options).items()}


def _there(options: ReadOptions) -> dict[TopicPartition, Offsets]:
    with Cluster(client_of(options)) as cluster:
        return readable(cluster, partitions_of(cluster, options), isolation_of(options))


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
    there = _there(options)
    gone = sorted(set(start) - set(there))
    if gone:
        report_loss(f"{', '.join(map(str, gone))} is gone.", options)
    ends: dict[TopicPartition, int] = {}
    for partition, offsets in there.items():
        end = offsets.end
        if target is not None:
            end = min(end, target.get(partition, start.get(partition, offsets.start)))
        if end < start.get(partition, 0):
            report_loss(
                f"{partition} was read up to offset {start[partition]}, and ends at {end} now.",
                options,
            )
        ends[partition] = end
    waiting = {
        partition: Offsets(max(start.get(partition, 0), there[partition].start), end)
        for partition, end in ends.items()
    }
    waiting = {partition: offsets for partition, offsets in waiting.items() if offsets.count}
    if max_offsets is not None:
        waiting = share_out(waiting, max_offsets, lambda _, offsets: offsets.count, by_count)
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
    offsets: dict[TopicPartition, Offsets] = {}
    for partition, until in end.items():
        since = start.get(partition, 0)
        if partition in starts and starts[partition].start > 0:
            report_loss(
                f"Offsets 0 to {starts[partition].start - 1} of {partition} are gone.", options
            )
            since = starts[partition].start
        offsets[partition] = Offsets(since, until)
    return tasks(offsets, options)
