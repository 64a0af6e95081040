"""
Topics that a request names, by their names or by their ids.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

from barnabas.coordination.steps import checkpoint
from barnabas.protocol.codec.schema import ZERO_UUID
from barnabas.protocol.errors import InvalidRequest, KafkaError, UnknownServerError

if TYPE_CHECKING:
    from barnabas.protocol.messages.delete_topics import DeleteTopicState
    from barnabas.protocol.messages.metadata import MetadataRequestTopic

FIRST_WITH_TOPIC_IDS: Final = 12


async def distinct(
    asked: Iterable[MetadataRequestTopic], version: int
) -> tuple[list[str], list[UUID]]:
    """
    The names and the ids that a Metadata asks for, each once.

    Args:
        version: of the API.

    Raises:
        InvalidRequest: a topic is named by its id in a version whose answers have no place for it.
        UnknownServerError: a topic has neither name nor id, and none has an id. Kafka has no better
            code for this, and fails the other topics with it.
    """
    names: dict[str, None] = {}
    ids: dict[UUID, None] = {}
    is_nameless = False
    for topic in asked:
        await checkpoint()
        if topic.name is not None:
            names[topic.name] = None
        elif version < FIRST_WITH_TOPIC_IDS:
            raise InvalidRequest(f"Topic name can not be null for version {version}")
        else:
            is_nameless = True
        if topic.topic_id != ZERO_UUID:
            if version < FIRST_WITH_TOPIC_IDS:
                raise InvalidRequest(
                    f"Topic IDs are not supported in requests for version {version}"
                )
            ids[topic.topic_id] = None
    if is_nameless and not ids:
        raise UnknownServerError("A topic has neither name nor id: give one of them")
    return list(names), list(ids)


class NamedOnce(NamedTuple):
    """
    What a request names once and alone, and the errors of the rest, with its name and its id.
    """

    names: Sequence[str]
    ids: Sequence[UUID]
    refused: Sequence[tuple[str | None, UUID, KafkaError]]


async def once_each(topics: Iterable[DeleteTopicState]) -> NamedOnce:
    """
    The topics that a DeleteTopics names, by a name or an id. All that share one are refused.
    """
    names: Counter[str] = Counter()
    ids: Counter[UUID] = Counter()
    refused: list[tuple[str | None, UUID, KafkaError]] = []
    unnamed = InvalidRequest("Neither topic name nor id were specified.")
    named_twice = InvalidRequest("You may not specify both topic name and topic id.")
    for topic in topics:
        await checkpoint()
        if topic.name is None and topic.topic_id == ZERO_UUID:
            refused.append((None, ZERO_UUID, unnamed))
        elif topic.name is None:
            ids[topic.topic_id] += 1
        elif topic.topic_id == ZERO_UUID:
            names[topic.name] += 1
        else:
            refused.append((topic.name, topic.topic_id, named_twice))
    repeated = InvalidRequest("Duplicate topic name.")
    refused += [(name, ZERO_UUID, repeated) for name, times in names.items() if times > 1]
    repeated = InvalidRequest("Duplicate topic id.")
    refused += [(None, topic_id, repeated) for topic_id, times in ids.items() if times > 1]
    return NamedOnce(
        [name for name, times in names.items() if times == 1],
        [topic_id for topic_id, times in ids.items() if times == 1],
        refused,
    )
