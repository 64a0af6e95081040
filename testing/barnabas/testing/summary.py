"""
A description of a broker for a message. It is bounded and never raises, whatever is in the broker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final

from barnabas.storage.units import counted
from barnabas.testing.errors import BrokerError
from barnabas.testing.operations.groups import groups
from barnabas.testing.operations.topics import names
from barnabas.testing.shown import (
    lines_or_reason,
    on_one_line,
    reason,
    shown,
    shown_time,
    within,
)
from barnabas.testing.topic import Topic

if TYPE_CHECKING:
    from barnabas.testing.hosts.host import Host
    from barnabas.testing.records import Record
    from barnabas.testing.views import Group

PATIENCE_S: Final = 10.0
"""
The longest real time for the contents, and for the log.
"""
MOST_TOPICS: Final = 10
MOST_GROUPS: Final = 10
MOST_RECORDS: Final = 5
"""The last records of each topic."""
MOST_OFFSETS: Final = 10
"""Of each group."""
MOST_CHARACTERS: Final = 60
"""Of each key and value."""
MOST_ID_CHARACTERS: Final = 250
"""Of each name and id."""
MOST_LOG_LINES: Final = 8
MOST_LINE_CHARACTERS: Final = 1000
"""Of each line of the log."""


def text(host: Host, log: Callable[[], str]) -> str:
    """
    The topics with their last records, the groups, and the end of the *log*.
    """
    return "\n".join([*_in_time(partial(contents, host)), *_in_time(lambda: log_lines(log()))])


def _in_time(lines: Callable[[], list[str]]) -> list[str]:
    try:
        return within(PATIENCE_S, lines)
    except BrokerError as error:
        return [on_one_line(str(error), MOST_LINE_CHARACTERS)]
    except TimeoutError:
        return [f"the broker does not answer within {PATIENCE_S:g} s"]
    except Exception as error:
        return [f"the broker cannot be asked: {reason(error)}"]


def contents(host: Host) -> list[str]:
    """
    The topics with their last records, and the groups.

    Raises:
        NotRunning: the broker does not run.
    """
    topics = [Topic(host, name) for name in host.call(names)]
    return [
        *_topics(topics),
        *lines_or_reason(lambda: _groups(host.call(groups)), "groups:"),
    ]


def log_lines(log: str) -> list[str]:
    """
    The end of *log*.
    """
    last = log.splitlines()[-MOST_LOG_LINES:]
    return ["log:", *(f"  {on_one_line(line, MOST_LINE_CHARACTERS)}" for line in last)]


def _topics(topics: list[Topic]) -> Iterator[str]:
    yield "topics:" if topics else "topics: none"
    for topic in topics[:MOST_TOPICS]:
        yield from lines_or_reason(partial(_topic, topic), f"  {topic.name}")
    if len(topics) > MOST_TOPICS:
        yield f"  and {len(topics) - MOST_TOPICS} more"


def _topic(topic: Topic) -> Iterator[str]:
    records = topic.records()
    partitions, count = counted(topic.partitions, "partition"), counted(len(records), "record")
    yield f"  {topic.name}: {partitions}, {count}"
    if len(records) > MOST_RECORDS:
        yield "    ..."
    for record in records[-MOST_RECORDS:]:
        yield f"    {_record(record)}"


def _record(record: Record) -> str:
    place = f"{record.partition}@{record.offset}"
    return f"{place} {shown_time(record.timestamp)} {_short(record.key)} {_short(record.value)}"


def _short(content: bytes | None) -> str:
    if content is None or len(content) <= MOST_CHARACTERS:
        return shown(content, 4 * MOST_CHARACTERS)
    return f"{content[:MOST_CHARACTERS]!r}... ({len(content)} bytes)"


def _groups(found: list[Group]) -> Iterator[str]:
    yield "groups:" if found else "groups: none"
    for group in found[:MOST_GROUPS]:
        name = on_one_line(group.id, MOST_ID_CHARACTERS)
        members = counted(len(group.members), "member")
        yield f"  {name}: {group.state}, {members}, lag {group.lag}"
        offsets = ", ".join(
            f"{topic}-{partition}@{offset}"
            for (topic, partition), offset in islice(group.offsets.items(), MOST_OFFSETS)
        )
        if offsets:
            yield f"    {on_one_line(offsets, 4 * MOST_CHARACTERS)}"
    if len(found) > MOST_GROUPS:
        yield f"  and {len(found) - MOST_GROUPS} more"
