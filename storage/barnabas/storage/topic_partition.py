"""
A partition of a topic, as all of the broker, the client and the tools name it.
"""

from __future__ import annotations

from barnabas.protocol.structs import NamedTuple


class TopicPartition(NamedTuple):
    """
    One partition of a topic.
    """

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"
