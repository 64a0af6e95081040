"""
Requests that create, enlarge and delete topics, in few words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from barnabas.protocol.codec.schema import ZERO_UUID, Message
from barnabas.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tests.support.build import api_request, build

TIMEOUT_MS = 10_000
FIRST_WITH_IDS = 6
"""
The version of DeleteTopics from which on it can name topics by their ids.
"""


def creatable(
    name: str,
    partitions: int = 1,
    factor: int = 1,
    assignments: Sequence[tuple[int, list[int]]] = (),
    configs: Mapping[str, str | None] | None = None,
) -> CreatableTopic:
    return build(
        CreatableTopic,
        name=name,
        num_partitions=partitions,
        replication_factor=factor,
        assignments=[{"partition_index": index, "broker_ids": ids} for index, ids in assignments],
        configs=[{"name": name, "value": value} for name, value in (configs or {}).items()],
    )


def create_request(**partitions: int) -> CreateTopicsRequest:
    topics = [creatable(name, count) for name, count in partitions.items()]
    return CreateTopicsRequest(topics=topics, timeout_ms=TIMEOUT_MS)


def grow_request(**counts: int) -> Message:
    topics = [{"name": name, "count": count, "assignments": None} for name, count in counts.items()]
    return api_request(
        "create_partitions", topics=topics, timeout_ms=TIMEOUT_MS, validate_only=False
    )


def delete_request(version: int, *names: str) -> Message:
    """
    Delete topics by name, in the form of that *version*.
    """
    if version < FIRST_WITH_IDS:
        return api_request("delete_topics", topic_names=names, timeout_ms=TIMEOUT_MS)
    states = [{"name": name, "topic_id": ZERO_UUID} for name in names]
    return api_request("delete_topics", topics=states, timeout_ms=TIMEOUT_MS)
