"""
Names of topics: legal names, internal topics, collisions.

The rules are those of Kafka's ``Topic`` class.
"""

from __future__ import annotations

import re
from typing import Final

from barnabas.protocol.errors import ErrorCode, InvalidTopicException

GROUP_METADATA_TOPIC: Final = "__consumer_offsets"
TRANSACTION_STATE_TOPIC: Final = "__transaction_state"
SHARE_GROUP_STATE_TOPIC: Final = "__share_group_state"
CLUSTER_METADATA_TOPIC: Final = "__cluster_metadata"

INTERNAL_TOPICS: Final = frozenset(
    {GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC, SHARE_GROUP_STATE_TOPIC}
)
"""
Topics that clients may read but not write: they are marked as internal in metadata.
"""

MAX_NAME_LENGTH: Final = 249
"""
``<name>-<partition>`` and the suffixes of directories fit into a file name of 255 bytes.
"""

_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


def reason_invalid(name: str) -> str | None:
    """
    The reason why *name* is illegal as the name of a topic, or ``None`` if it is legal.
    """
    if not name:
        return "the empty string is not allowed"
    if name in (".", ".."):
        return f"'{name}' is not allowed"
    if len(name) > MAX_NAME_LENGTH:
        return f"the length of '{name}' is longer than the max allowed length {MAX_NAME_LENGTH}"
    if _LEGAL.fullmatch(name) is None:
        return (
            f"'{name}' contains one or more characters other than ASCII alphanumerics,"
            " '.', '_' and '-'"
        )
    return None


def validate_topic_name(name: str) -> None:
    """
    Raises:
        InvalidTopicException: *name* is not a legal name of a topic.
    """
    reason = reason_invalid(name)
    if reason is not None:
        raise InvalidTopicException(f"Topic name is invalid: {reason}")


def unknown_topic_code(name: str) -> ErrorCode:
    """
    The error code for a topic that does not exist. It says whether one of that name could.
    """
    if reason_invalid(name) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.INVALID_TOPIC_EXCEPTION


def is_internal(name: str) -> bool:
    """
    Whether the topic is one in which a coordinator keeps its state.
    """
    return name in INTERNAL_TOPICS


def collision_key(name: str) -> str | None:
    """
    The key that colliding names share, ``None`` for a name that cannot collide.

    Kafka's metrics write ``.`` as ``_``: names that differ in nothing else collide.
    """
    if "." not in name and "_" not in name:
        return None
    return name.replace(".", "_")
