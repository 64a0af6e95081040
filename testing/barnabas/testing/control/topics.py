"""
Topics, their records and their segments.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Final

from barnabas.server.http.guard import Refused
from barnabas.server.http.json_api import CREATED, DONE, Answer, Nothing, Operation
from barnabas.server.http.pages import MOST_BYTES, Entry, Page, page
from barnabas.testing.control.control import Control
from barnabas.testing.control.texts import to_bytes, to_fields
from barnabas.testing.records import NewRecord, Record
from barnabas.testing.views import Segment

RECORD_BYTES: Final = 200
"""
About the bytes of a record in JSON without its contents.
"""


@dataclass(frozen=True, slots=True)
class NewTopic:
    """
    How a topic is created.
    """

    partitions: int = 1
    config: dict[str, str | int | float | bool] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Header:
    """
    A header of a record.
    """

    name: str
    value: str | None = None
    value_base64: str | None = None


@dataclass(frozen=True, slots=True)
class RecordToAppend:
    """
    A record, whose key and value are text or base64.
    """

    key: str | None = None
    key_base64: str | None = None
    value: str | None = None
    value_base64: str | None = None
    timestamp: int | None = None
    headers: list[Header] = field(default_factory=list)
    partition: int | None = None


@dataclass(frozen=True, slots=True)
class RecordsToAppend:
    """
    Records, in their order.
    """

    records: list[RecordToAppend]


@dataclass(frozen=True, slots=True)
class RecordPage(Page):
    """
    Which records of a topic, and how they are shown.
    """

    partition: int | None = None
    committed: bool = False
    base64: bool = False


@dataclass(frozen=True, slots=True)
class OnePartition:
    """
    A partition of a topic.
    """

    partition: int = 0


def list_topics(control: Control, given: Page) -> Answer:
    return page(
        "topics",
        control.broker.topics,
        given,
        lambda topic: Entry({"name": topic.name, "partitions": topic.partitions}),
    )


def show(control: Control, _: Nothing, *, name: str) -> Answer:
    return Answer({"name": name, "partitions": control.broker.topic(name).partitions})


def create(control: Control, given: NewTopic, *, name: str) -> Answer:
    topic = control.broker.topic(name).create(given.partitions, config=given.config)
    return Answer({"name": name, "partitions": topic.partitions}, CREATED)


def delete(control: Control, _: Nothing, *, name: str) -> Answer:
    control.broker.topic(name).delete()
    return DONE


def append(control: Control, given: RecordsToAppend, *, name: str) -> Answer:
    control.broker.topic(name).append([_new_record(record) for record in given.records])
    return Answer({"appended": len(given.records)}, CREATED)


def _new_record(given: RecordToAppend) -> NewRecord:
    if given.timestamp is not None and not 0 <= given.timestamp < 1 << 63:
        raise Refused(400, f"timestamp is in ms since 1970, not {given.timestamp}")
    return NewRecord(
        value=to_bytes("value", given.value, given.value_base64),
        key=to_bytes("key", given.key, given.key_base64),
        timestamp=given.timestamp,
        headers=[
            (header.name, to_bytes("value", header.value, header.value_base64))
            for header in given.headers
        ],
        partition=given.partition,
    )


def records(control: Control, given: RecordPage, *, name: str) -> Answer:
    found = control.broker.topic(name).records(given.partition, committed=given.committed)
    return page("records", found, given, lambda record: _record(record, given.base64))


def _record(record: Record, as_base64: bool) -> Entry:
    headers = [
        {"name": name, **to_fields("value", value, as_base64=as_base64)}
        for name, value in record.headers
    ]
    content: dict[str, Any] = {
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        **to_fields("key", record.key, as_base64=as_base64),
        **to_fields("value", record.value, as_base64=as_base64),
        "headers": headers,
    }
    parts = [record.key, record.value, *(value for _, value in record.headers)]
    return Entry(content, RECORD_BYTES + sum(len(part or b"") for part in parts))


def segments(control: Control, given: Page, *, name: str) -> Answer:
    return page("segments", control.broker.topic(name).segments, given, _segment)


def _segment(segment: Segment) -> Entry:
    content = asdict(segment)
    del content["topic"]
    return Entry(content)


def explain(control: Control, given: OnePartition, *, name: str) -> Answer:
    return Answer({"text": control.broker.topic(name).explain(given.partition)[:MOST_BYTES]})


OPERATIONS: Final = (
    Operation("GET", "/v1/topics", "the topics that exist", list_topics, Page),
    Operation("PUT", "/v1/topics/{name}", "creates a topic", create, NewTopic),
    Operation("GET", "/v1/topics/{name}", "a topic: its number of partitions", show),
    Operation("DELETE", "/v1/topics/{name}", "deletes a topic", delete),
    Operation(
        "POST", "/v1/topics/{name}/records", "appends records to the logs", append, RecordsToAppend
    ),
    Operation(
        "GET", "/v1/topics/{name}/records", "the records, from the beginning", records, RecordPage
    ),
    Operation(
        "GET", "/v1/topics/{name}/segments", "the segments of all partitions", segments, Page
    ),
    Operation(
        "GET", "/v1/topics/{name}/explain", "the text of barnabas explain", explain, OnePartition
    ),
)
