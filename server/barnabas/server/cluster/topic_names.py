"""
Names of topics: which are legal, which are the broker's own, which collide.

The rules are those of Kafka's ``Topic`` class.
"""

from __future__ import annotations

import re
from typing import Final

from barnabas.protocol.errors import InvalidTopicException

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
So that ``<name>-<partition>`` and the suffixes of directories fit into the 255 bytes of a file
name.
"""

_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


def reason_invalid(name: str) -> str | None:
    """
    What is wrong with *name*, or ``None`` when it is a legal name of a topic.
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


def is_internal(name: str) -> bool:
    """
    Whether the topic is one in which a coordinator keeps its state.
    """
    return name in INTERNAL_TOPICS


def collision_key(name: str) -> str | None:
    """
    What two names that collide have in common, ``None`` for a name that cannot collide.

    Kafka's metrics write ``.`` as ``_``; of names that differ in nothing else there may be only
    one.
    """
    if "." not in name and "_" not in name:
        return None
    return name.replace(".", "_")
