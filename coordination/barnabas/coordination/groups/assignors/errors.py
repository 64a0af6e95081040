"""
Errors of the assignors.
"""

from __future__ import annotations

from typing import Final
from uuid import UUID


class PartitionAssignorError(Exception):
    """
    The partitions of a group cannot be assigned (Kafka's ``PartitionAssignorException``).
    """


class TopicWithoutMetadata(PartitionAssignorError):
    """
    A member subscribes to a topic whose partitions are not known.
    """

    def __init__(self, topic_id: UUID) -> None:
        super().__init__(f"A member is subscribed to topic {topic_id}, which does not exist.")
        self.topic_id: Final = topic_id


class TaskAssignorError(Exception):
    """
    The tasks of a streams group cannot be assigned (Kafka's ``TaskAssignorException``).
    """
