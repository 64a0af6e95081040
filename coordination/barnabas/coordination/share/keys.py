"""
The names of share-partitions: a partition of a topic, as one group consumes it.
"""

from __future__ import annotations

from uuid import UUID

from barnabas.protocol.errors import InvalidRequest
from barnabas.protocol.structs import NamedTuple
from barnabas.storage.uuids import parse_uuid, uuid_text


class SharePartitionKey(NamedTuple):
    """
    A group and a partition of a topic (Kafka's class of this name).
    """

    group_id: str
    topic_id: UUID
    partition: int

    @property
    def coordinator_key(self) -> str:
        """
        The text that decides which partition of ``__share_group_state`` has the state.
        """
        return f"{self.group_id}:{uuid_text(self.topic_id)}:{self.partition}"


def parse_coordinator_key(text: str) -> SharePartitionKey:
    """
    The key with that text. Colons in the id of a group are part of it.

    Raises:
        InvalidRequest: the text is none of a key.
    """
    group_id, *rest = text.rsplit(":", 2)
    try:
        topic_id, partition = rest
        key = SharePartitionKey(group_id, parse_uuid(topic_id), int(partition))
    except ValueError:
        raise InvalidRequest(f"{text!r} is no group:topicId:partition") from None
    if not group_id.strip():
        raise InvalidRequest(f"{text!r} has no group id")
    return key
