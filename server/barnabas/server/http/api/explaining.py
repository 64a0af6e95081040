"""
The answers of ``barnabas explain`` about a log of a broker that runs.

The code and the files are those of the command; the settings are those that the broker has.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final, TypedDict, TypeVar

from barnabas.protocol.structs import replace, struct
from barnabas.server.http.api.context import ApiContext
from barnabas.server.http.api.settings import known_cluster
from barnabas.server.http.fields import Range
from barnabas.server.http.guard import Refused
from barnabas.server.http.json_api import Answer, Operation
from barnabas.storage.explain.as_json import partition_facts
from barnabas.storage.explain.known import BrokerTimes, TopicSettings
from barnabas.storage.explain.logs import ReadOnlyLogs, patiently
from barnabas.storage.explain.report import (
    PartitionReport,
    report_on,
    report_on_offset,
    report_on_segment,
    report_on_time,
)
from barnabas.storage.explain.units import parse_moment
from barnabas.storage.topic_partition import TopicPartition
from barnabas.storage.units import LONG_MAX

T = TypeVar("T")

PARTITION: Final = "/topics/{topic}/partitions/{partition}"
MOST_READ_BYTES: Final = 16 << 20
"""About so many bytes of batches are read for an answer, and so many of one batch unpacked."""
MOST_SEGMENTS: Final = 5000
"""The most segments of an answer with all sentences."""


@dataclass(frozen=True, slots=True)
class WhatIf:
    """
    What is supposed, and for what time.
    """

    set: Annotated[
        list[str], "name=value, to answer for this setting of the topic or the broker; may repeat"
    ] = field(default_factory=list)
    at: Annotated[str, "a time in ISO 8601, or in ms since 1970, to answer for instead of now"] = ""


@dataclass(frozen=True, slots=True)
class Question(WhatIf):
    """
    What is asked of a partition; without an offset, a time or a segment it is all of it.
    """

    offset: Annotated[int | None, Range(0, LONG_MAX), "one record"] = None
    timestamp: Annotated[str | None, "the first record that is not older; as for at"] = None
    segment: Annotated[int | None, Range(0, LONG_MAX), "the segment with this base offset"] = None
    start: Annotated[int, Range(0), "the number of segments before the page"] = 0
    limit: Annotated[int, Range(1, MOST_SEGMENTS), "the most segments"] = 100


@dataclass(frozen=True, slots=True)
class LookUp(WhatIf):
    """
    What is looked up.
    """

    offset: Annotated[int | None, Range(0, LONG_MAX), "a record"] = None
    timestamp: Annotated[str | None, "the first record that is not older; as for at"] = None


class ExplainedView(TypedDict):
    """
    What ``barnabas explain --format json`` prints for the partition.
    """

    explained: dict[str, Any]
    next: int | None
    total: Annotated[int, "the number of segments"]


class LookUpView(TypedDict):
    """
    A look-up step by step, in the words of ``barnabas explain``.
    """

    topic: str
    partition: int
    now_ms: int
    time: Annotated[dict[str, Any] | None, "from a time to an offset"]
    offset: Annotated[dict[str, Any] | None, "from an offset to a batch"]
    record: dict[str, Any] | None
    segment: dict[str, Any]


@struct
class _Known:
    """
    The settings for one log: the ``Cluster`` of ``barnabas explain``.
    """

    data_dirs: Collection[Path]
    times: BrokerTimes
    settings: TopicSettings
    replicas: int | None

    def settings_of(self, topic: str) -> TopicSettings:
        return self.settings

    def replicas_of(self, partition: TopicPartition) -> int | None:
        return self.replicas


async def report(
    api: ApiContext,
    partition: TopicPartition,
    what_if: WhatIf,
    use: Callable[[PartitionReport], T],
) -> T:
    """
    What *use* makes of the report on a partition, in a thread.

    Raises:
        ConfigError: a supposition or the time is malformed.
        ExplainError: there is no answer.
    """
    broker = api.broker
    cluster = await api.in_thread(lambda: known_cluster(api, what_if.set))
    known = _Known(
        _directories(api, partition, cluster.data_dirs),
        cluster.times,
        cluster.settings_of(partition.topic),
        cluster.replicas_of(partition),
    )
    now_ms = parse_moment(what_if.at) if what_if.at else broker.clock.now_ms()
    stamp = _stamp(api, partition, known.settings)

    def explain() -> T:
        only = partition if len(known.data_dirs) == 1 else None
        logs = ReadOnlyLogs(known, broker.files, broker.clock, only)
        return api.opened_logs.use(
            logs, partition, stamp, lambda opened: use(report_on(opened, known.times, now_ms))
        )

    try:
        # A log with thousands of segments is very many objects.
        with broker.turns.elsewhere():
            return await api.in_thread(lambda: patiently(explain))
    finally:
        api.opened_logs.expire(broker.clock)


def _stamp(api: ApiContext, partition: TopicPartition, settings: TopicSettings) -> object:
    """
    What tells whether a log has changed since it was opened; None if nothing can.
    """
    found = api.parts.partitions.get(*partition)
    if found is None:
        return None
    log = found.log
    return (
        found.topic_id,
        log.log_start_offset,
        log.last_stable_offset,
        log.high_watermark,
        log.log_end_offset,
        log.segments.number_of_segments,
        log.size,
        settings.config.segment_index_bytes,
    )


def _directories(
    api: ApiContext, partition: TopicPartition, directories: Collection[Path]
) -> Collection[Path]:
    """
    The log directory of a partition, or all of them if it is offline.
    """
    found = api.parts.partitions.get(*partition)
    if found is None:
        return directories
    here = found.log.parent_dir.absolute()
    return [path for path in directories if path.absolute() == here] or directories


async def explain(api: ApiContext, given: Question, *, topic: str, partition: str) -> Answer:
    where = TopicPartition(topic, api.partition_index(topic, partition))
    asks: list[Callable[[PartitionReport], PartitionReport]] = []
    if given.segment is not None:
        asks.append(lambda found: report_on_segment(found, given.segment or 0))
    if given.offset is not None:
        asks.append(lambda found: report_on_offset(found, given.offset or 0, MOST_READ_BYTES))
    if given.timestamp is not None:
        timestamp = parse_moment(given.timestamp)
        asks.append(lambda found: report_on_time(found, timestamp, MOST_READ_BYTES))
    if len(asks) > 1:
        raise Refused(400, "there are several questions: give an offset, a timestamp, or a segment")

    def answer(found: PartitionReport) -> Answer:
        total = len(found.segments)
        for ask in asks:
            found = ask(found)
        end = given.start + given.limit
        page = replace(found, segments=found.segments[given.start : end])
        view: ExplainedView = {
            "explained": partition_facts(page, with_keys=api.are_records_allowed),
            "next": end if end < total and not asks else None,
            "total": total,
        }
        return Answer(view)

    return await report(api, where, given, answer)


async def look_up(api: ApiContext, given: LookUp, *, topic: str, partition: str) -> Answer:
    where = TopicPartition(topic, api.partition_index(topic, partition))
    if (given.offset is None) == (given.timestamp is None):
        raise Refused(400, "a look-up needs an offset or a timestamp, and not both")
    if given.offset is not None:
        ask = partial(_ask, report_on_offset, given.offset)
    else:
        ask = partial(_ask, report_on_time, parse_moment(given.timestamp or ""))

    def answer(found: PartitionReport) -> Answer:
        facts = partition_facts(ask(found), with_keys=api.are_records_allowed)
        view: LookUpView = {
            "topic": topic,
            "partition": where.partition,
            "now_ms": facts["now_ms"],
            "time": facts.get("time"),
            "offset": facts.get("offset"),
            "record": facts.get("record"),
            "segment": facts["segments"][0],
        }
        return Answer(view)

    return await report(api, where, given, answer)


def _ask(
    question: Callable[[PartitionReport, int, int], PartitionReport],
    value: int,
    found: PartitionReport,
) -> PartitionReport:
    return question(found, value, MOST_READ_BYTES)


OPERATIONS: Final = (
    Operation(
        "GET",
        f"{PARTITION}/explain",
        "what barnabas explain says of a partition, with suppositions",
        explain,
        Question,
        ExplainedView,
    ),
    Operation(
        "GET",
        f"{PARTITION}/lookup",
        "the look-up of a record, step by step",
        look_up,
        LookUp,
        LookUpView,
    ),
)
