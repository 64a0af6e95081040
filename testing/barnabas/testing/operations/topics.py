"""
Topics: creating, deleting and describing them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from barnabas.coordination.cluster.image import Topic
from barnabas.protocol.errors import InvalidConfig as ConfigRefused
from barnabas.protocol.errors import KafkaError, TopicAlreadyExists
from barnabas.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig
from barnabas.testing.errors import (
    BrokerError,
    InvalidConfig,
    InvalidTopic,
    TopicExists,
    UnknownTopic,
    hides_frame,
)
from barnabas.testing.hosts.embedded import Embedded
from barnabas.testing.views import Segment

__tracebackhide__ = hides_frame


class Layout(NamedTuple):
    """
    What an append needs to know of a topic.
    """

    partitions: int
    most_batch_bytes: int
    now_ms: int


def expect_topic(broker: Embedded, name: str) -> Topic:
    """
    The topic with that name.

    Raises:
        UnknownTopic: there is none.
    """
    topic = broker.parts.topics.get(name)
    if topic is None:
        known = ", ".join(sorted(topic.name for topic in broker.parts.topics)) or "none"
        raise UnknownTopic(
            f"the topic {name} does not exist (there are: {known})",
            hint=f"broker.topic({name!r}).create() creates it",
        )
    return topic


def partition_indexes(broker: Embedded, name: str, partition: int | None) -> list[int]:
    """
    The numbers of all partitions of a topic, or the one that is asked for.

    Raises:
        UnknownTopic: the topic has no partition with that number, or does not exist.
    """
    there = sorted(expect_topic(broker, name).partitions)
    if partition is None:
        return there
    if partition not in there:
        raise UnknownTopic(f"the topic {name} has {len(there)} partitions, not one {partition}")
    return [partition]


async def names(broker: Embedded) -> list[str]:
    """
    The topics that are not internal ones.
    """
    return sorted(topic.name for topic in broker.parts.topics if not topic.is_internal)


async def create(broker: Embedded, name: str, partitions: int, config: Mapping[str, str]) -> None:
    """
    Create a topic.

    Raises:
        TopicExists, InvalidTopic, InvalidConfig: it is refused.
    """
    request = CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=1,
        assignments=[],
        configs=[CreatableTopicConfig(name=option, value=text) for option, text in config.items()],
    )
    try:
        plan = await broker.parts.topics.create([request])
    except KafkaError as error:
        raise _refusal(name, error) from error
    for refused in plan.errors.values():
        raise _refusal(name, refused)


def _refusal(name: str, error: KafkaError) -> BrokerError:
    kinds: dict[type[KafkaError], type[BrokerError]] = {
        TopicAlreadyExists: TopicExists,
        ConfigRefused: InvalidConfig,
    }
    kind = next((ours for theirs, ours in kinds.items() if isinstance(error, theirs)), InvalidTopic)
    return kind(f"the topic {name} cannot be created: {error}")


async def delete(broker: Embedded, name: str) -> None:
    """
    Delete a topic.

    Raises:
        UnknownTopic: it does not exist.
    """
    topic = expect_topic(broker, name)
    errors = await broker.parts.topics.delete([topic.id])
    for error in errors.values():
        raise BrokerError(f"the topic {name} cannot be deleted: {error}")


async def layout(broker: Embedded, name: str) -> Layout:
    """
    What an append needs to know.

    Raises:
        UnknownTopic: the topic does not exist.
    """
    topic = expect_topic(broker, name)
    config = broker.parts.topics.configs.log_config(name)
    return Layout(
        partitions=len(topic.partitions),
        most_batch_bytes=min(config.max_message_bytes, config.segment_bytes),
        now_ms=broker.clock.now_ms(),
    )


async def segments(broker: Embedded, name: str) -> list[Segment]:
    """
    The segments of a topic, by partition and base offset.

    Raises:
        UnknownTopic: the topic does not exist.
    """
    found = []
    for index in partition_indexes(broker, name, None):
        log = broker.parts.partitions.expect(name, index).log
        for segment in log.segments.values():
            largest = segment.largest_record_timestamp()
            found.append(
                Segment(
                    topic=name,
                    partition=index,
                    base_offset=segment.base_offset,
                    size=segment.size,
                    largest_timestamp=-1 if largest is None else largest,
                    is_active=segment is log.active_segment,
                )
            )
    return found
