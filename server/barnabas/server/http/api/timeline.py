"""
A partition and its segments: why each ended, when each is deleted, and how far groups are.

The segments are in columns: several thousand of them fit into an answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, TypedDict

from barnabas.server.http.api.context import ApiContext
from barnabas.server.http.api.explaining import PARTITION, WhatIf, report
from barnabas.server.http.api.positions import PositionView, positions_in
from barnabas.server.http.api.settings import SettingView
from barnabas.server.http.json_api import Answer, Operation
from barnabas.storage.explain.as_columns import segments_in_columns
from barnabas.storage.explain.as_json import log_facts
from barnabas.storage.explain.report import PartitionReport
from barnabas.storage.topic_partition import TopicPartition

Rule = Literal["log_start_offset", "retention_bytes", "retention_ms"]


@dataclass(frozen=True, slots=True)
class TimelineQuery(WhatIf):
    """
    What is supposed, and what is left out.
    """

    endings: Annotated[
        bool, "whether the reasons for the ends of segments are given: they take the most time"
    ] = True


class SegmentColumns(TypedDict, total=False):
    """
    The segments, oldest first: a list for each fact.
    """

    base_offset: list[int]
    end_offset: list[int]
    size: list[int]
    first_batch_timestamp: list[int | None]
    largest_timestamp: list[int]
    has_timestamps: list[bool]
    cause: Annotated[list[str], "the kind of reason for its end, unless endings is false"]
    reason: Annotated[list[str | None], "likewise"]
    certainty: Annotated[list[Literal["certain", "inferred", "unknown"]], "likewise"]
    goes_by: Annotated[list[Rule | None], "the rule by which the next check deletes it"]
    rule: Annotated[list[Rule | None], "the same, or else the rule that deletes it later"]
    due_ms: list[int | None]
    bytes_missing: list[int | None]
    unreadable_earliest_ms: list[int | None]
    unreadable_latest_ms: list[int | None]
    removed_earliest_ms: list[int | None]
    removed_latest_ms: list[int | None]
    part: Annotated[
        list[Literal["clean", "cleanable", "uncleanable", "active"]], "of a compacted log only"
    ]


class TimelineView(TypedDict):
    """
    A partition, in the words of ``barnabas explain``.
    """

    topic: str
    partition: int
    path: str
    condition: str
    was_recovered: bool
    now_ms: int
    log_start_offset: int
    last_stable_offset: int
    high_watermark: int
    log_end_offset: int
    size: int
    waiting_files: dict[str, int]
    settings_note: str
    settings: dict[str, SettingView]
    supposed_in_vain: list[str]
    broker: dict[str, Any]
    words: list[str]
    cleaning: dict[str, Any] | None
    segments: SegmentColumns
    groups: list[PositionView]


async def show(api: ApiContext, given: TimelineQuery, *, topic: str, partition: str) -> Answer:
    where = TopicPartition(topic, api.partition_index(topic, partition))
    positions = await api.in_turns(positions_in(api.parts, api.broker.forecasts, *where))

    def answer(found: PartitionReport) -> Answer:
        facts = {"cleaning": None, **log_facts(found)}
        segments = segments_in_columns(found, endings=given.endings)
        return Answer({**facts, "segments": segments, "groups": positions})

    return await report(api, where, given, answer)


OPERATIONS: Final = (
    Operation(
        "GET",
        PARTITION,
        "a partition and its segments, with suppositions",
        show,
        TimelineQuery,
        TimelineView,
    ),
)
