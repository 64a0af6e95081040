"""
Compare the responses of two brokers, without the values that each broker generates.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from barnabas.protocol.codec.schema import ZERO_UUID, fields
from barnabas.protocol.errors import ErrorCode

OWN = "<its own>"
"""
What stands for a value that is there, and is another one on each broker.
"""


def plain(message: Any, own: Container[str] = ()) -> Any:
    """
    A message as plain values, without sentences that only repeat the code, which each broker words
    differently.

    Args:
        own: fields whose presence is compared, but not their value.
    """
    if isinstance(message, list):
        return [plain(item, own) for item in message]
    if not hasattr(type(message), "__match_args__"):
        return message
    values = {field.name: getattr(message, field.name) for field in fields(type(message))}
    return {
        name: OWN if name in own and _is_something(value) else plain(value, own)
        for name, value in values.items()
    }


def without_common_sentences(ours: Any, theirs: Any) -> Any:
    """
    *theirs* with our sentence wherever ours only repeats the error code.
    """
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        return [without_common_sentences(a, b) for a, b in zip(ours, theirs, strict=True)]
    if not isinstance(ours, dict) or not isinstance(theirs, dict):
        return theirs
    merged = {
        name: without_common_sentences(ours.get(name), value) for name, value in theirs.items()
    }
    code = ours.get("error_code")
    said = ours.get("error_message")
    if code and said == ErrorCode(code).sentence and theirs.get("error_message"):
        merged["error_message"] = said
    return merged


def in_order(theirs: Any, ours: Any) -> Any:
    """
    *theirs* with its lists in our order where both have the same items: Kafka's come from hash
    maps.
    """
    if isinstance(theirs, dict) and isinstance(ours, dict):
        return {name: in_order(value, ours.get(name)) for name, value in theirs.items()}
    if not isinstance(theirs, list) or not isinstance(ours, list) or len(theirs) != len(ours):
        return theirs
    theirs, ordered = list(theirs), []
    for one in ours:
        like = next((other for other in theirs if in_order(other, one) == one), None)
        if like is None:
            return theirs
        theirs.remove(like)
        ordered.append(one)
    return ordered


def _is_something(value: Any) -> bool:
    return value not in (None, -1, ZERO_UUID, "")
