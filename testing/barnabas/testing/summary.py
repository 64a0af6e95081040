"""
A description of a broker for a message: bounded, whatever is in the broker.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from barnabas.testing.errors import BrokerError
from barnabas.testing.operations.groups import groups
from barnabas.testing.operations.topics import names
from barnabas.testing.topic import Topic

if TYPE_CHECKING:
    from barnabas.testing.hosts.host import Host
    from barnabas.testing.records import Record

MOST_TOPICS: Final = 10
MOST_GROUPS: Final = 10
MOST_RECORDS: Final = 5
"""The last records of each topic."""
MOST_CHARACTERS: Final = 60
"""Of each key and value."""
MOST_LOG_LINES: Final = 20


def text(host: Host, log: str) -> str:
    """
    The topics with their last records, the groups, and the end of *log*.
    """
    try:
        lines = [*contents(host), *log_lines(log)]
    except BrokerError as error:
        lines = [str(error), *log_lines(log)]
    return "\n".join(lines)


def contents(host: Host) -> list[str]:
    """
    The topics with their last records, and the groups.

    Raises:
        NotRunning: the broker does not run.
    """
    return [*_topics(host), *_groups(host)]


def log_lines(log: str) -> list[str]:
    """
    The end of *log*.
    """
    return ["log:", *(f"  {line}" for line in log.splitlines()[-MOST_LOG_LINES:])]


def _topics(host: Host) -> Iterator[str]:
    topics = [Topic(host, name) for name in host.call(names)]
    yield "topics:" if topics else "topics: none"
    for topic in topics[:MOST_TOPICS]:
        yield from _topic(topic)
    if len(topics) > MOST_TOPICS:
        yield f"  and {len(topics) - MOST_TOPICS} more"


def _topic(topic: Topic) -> Iterator[str]:
    records = topic.records()
    yield f"  {topic.name}: {topic.partitions} partitions, {len(records)} records"
    if len(records) > MOST_RECORDS:
        yield "    ..."
    for record in records[-MOST_RECORDS:]:
        yield f"    {_record(record)}"


def _record(record: Record) -> str:
    place = f"{record.partition}@{record.offset}"
    return f"{place} {record.time:%Y-%m-%d %H:%M:%S} {_short(record.key)} {_short(record.value)}"


def _short(content: bytes | None) -> str:
    if content is None or len(content) <= MOST_CHARACTERS:
        return repr(content)
    return f"{content[:MOST_CHARACTERS]!r}... ({len(content)} bytes)"


def _groups(host: Host) -> Iterator[str]:
    found = host.call(groups)
    yield "groups:" if found else "groups: none"
    for group in found[:MOST_GROUPS]:
        offsets = ", ".join(
            f"{topic}-{partition}@{offset}" for (topic, partition), offset in group.offsets.items()
        )
        yield f"  {group.id}: {group.state}, {len(group.members)} members, lag {group.lag}"
        if offsets:
            yield f"    {offsets[: 4 * MOST_CHARACTERS]}"
    if len(found) > MOST_GROUPS:
        yield f"  and {len(found) - MOST_GROUPS} more"
