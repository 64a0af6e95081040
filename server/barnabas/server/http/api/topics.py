"""
Topics and their partitions.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypedDict

from barnabas.coordination.steps import map_in_turns
from barnabas.server.http.api.attention import Attention
from barnabas.server.http.api.context import ApiContext
from barnabas.server.http.api.look import Look, TopicLook, error_of, look_at
from barnabas.server.http.api.pages import listed
from barnabas.server.http.api.rates import Counts, RatesView
from barnabas.server.http.api.settings import SettingView, known_cluster, settings_view
from barnabas.server.http.json_api import Answer, Operation
from barnabas.server.http.pages import Entry, Page
from barnabas.storage.uuids import uuid_text

if TYPE_CHECKING:
    from barnabas.coordination.cluster.image import Topic
    from barnabas.server.partitions.partitions import Partitions

Order = Literal["name", "size", "partitions", "records_in", "bytes_in", "bytes_out"]


@dataclass(frozen=True, slots=True)
class TopicPage(Page):
    """
    Which topics.
    """

    sort: Annotated[Order, "by name, or the largest first; traffic is that of now"] = "name"
    contains: Annotated[str, "a part of the names"] = ""
    internal: Annotated[bool, "whether the topics of coordinators are among them"] = True


class TopicView(TypedDict):
    """
    A topic, and the sums of its partitions.
    """

    name: str
    id: Annotated[str, "as Kafka's tools print it"]
    is_internal: bool
    partitions: int
    offline_partitions: int
    segments: int
    size: int
    records_in: Annotated[int, "since the broker has started"]
    bytes_in: int
    bytes_out: int
    rates: RatesView | None
    attention: Annotated[int, "how many things somebody should look at"]


class TopicsView(TypedDict):
    """
    Topics.
    """

    topics: list[TopicView]
    next: int | None
    total: int


class PartitionView(TypedDict):
    """
    A partition; most of it is null while it is offline.
    """

    partition: int
    log_start_offset: int | None
    last_stable_offset: int | None
    high_watermark: int | None
    log_end_offset: int | None
    segments: int | None
    size: int | None
    directory: str | None
    leader_epoch: int | None
    error: str | None


class WholeTopicView(TopicView):
    """
    A topic with its partitions.
    """

    partition_list: list[PartitionView]
    next: int | None
    settings: dict[str, SettingView]
    attention_list: list[Attention]


async def list_topics(api: ApiContext, given: TopicPage) -> Answer:
    look = await api.in_turns(look_at(api.parts, api.broker.forecasts))
    return await api.in_thread(partial(_listed, api, look, given))


def _listed(api: ApiContext, look: Look, given: TopicPage) -> Answer:
    rates = api.rates.note(look.counts)
    found = [
        each
        for name, each in look.topics.items()
        if given.contains in name and (given.internal or not each.topic.is_internal)
    ]
    found.sort(key=lambda each: each.topic.name)
    if given.sort != "name":
        order = given.sort

        def size(each: TopicLook) -> float:
            return _value(order, each, rates.get(each.topic.name))

        found.sort(key=size, reverse=True)
    return listed(
        "topics", found, given, lambda each: Entry(_view(each, rates.get(each.topic.name)))
    )


def _value(order: Order, each: TopicLook, rates: RatesView | None) -> float:
    if order == "size":
        return each.size
    if order == "partitions":
        return each.open + each.offline
    if rates is None:
        return float(getattr(each.traffic, order))
    return float(dict(rates)[order])  # type: ignore[arg-type]  # all of them are numbers


def _view(each: TopicLook, rates: RatesView | None) -> TopicView:
    counts: Counts = each.counts
    return {
        "name": each.topic.name,
        "id": uuid_text(each.topic.id),
        "is_internal": each.topic.is_internal,
        "partitions": each.open + each.offline,
        "offline_partitions": each.offline,
        "segments": each.segments,
        "size": each.size,
        **counts._asdict(),  # type: ignore[typeddict-item]  # the three of them
        "rates": rates,
        "attention": len(each.attention),
    }


async def show(api: ApiContext, given: Page, *, topic: str) -> Answer:
    found = api.topic(topic)
    cluster = await api.in_thread(lambda: known_cluster(api))
    settings = settings_view(cluster.settings_of(topic))
    look = await api.in_turns(look_at(api.parts, api.broker.forecasts))
    rates = await api.in_thread(lambda: api.rates.note(look.counts))
    partitions = await api.in_turns(_partitions(found, api.parts.partitions, given))
    seen = look.topics.get(topic) or TopicLook(found)
    end = given.start + len(partitions)
    view: WholeTopicView = {
        **_view(seen, rates.get(topic)),
        "partition_list": partitions,
        "next": end if end < len(found.partitions) else None,
        "settings": settings,
        "attention_list": seen.attention,
    }
    return Answer(view)


async def _partitions(topic: Topic, partitions: Partitions, given: Page) -> list[PartitionView]:
    indexes = sorted(topic.partitions)[given.start : given.start + given.limit]
    return await map_in_turns(partial(_partition, topic.name, partitions), indexes)


def _partition(topic: str, partitions: Partitions, index: int) -> PartitionView:
    partition = partitions.get(topic, index)
    if partition is None or partition.error is not None:
        return {
            "partition": index,
            "log_start_offset": None,
            "last_stable_offset": None,
            "high_watermark": None,
            "log_end_offset": None,
            "segments": None,
            "size": None,
            "directory": None,
            "leader_epoch": None,
            "error": error_of(partitions, topic, index),
        }
    log = partition.log
    return {
        "partition": index,
        "log_start_offset": log.log_start_offset,
        "last_stable_offset": log.last_stable_offset,
        "high_watermark": log.high_watermark,
        "log_end_offset": log.log_end_offset,
        "segments": log.segments.number_of_segments,
        "size": log.size,
        "directory": str(log.parent_dir),
        "leader_epoch": partition.leader_epoch,
        "error": None,
    }


OPERATIONS: Final = (
    Operation("GET", "/topics", "the topics", list_topics, TopicPage, TopicsView),
    Operation("GET", "/topics/{topic}", "a topic and its partitions", show, Page, WholeTopicView),
)
