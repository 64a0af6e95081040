"""
Build messages from dicts, without imports of their classes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar
from uuid import UUID

from barnabas.protocol.apis import MODULES
from barnabas.protocol.codec.schema import Array, Message, Struct, Type, fields
from barnabas.protocol.messages import REQUESTS

M = TypeVar("M")
API_KEYS: Final = {name: key for key, name in MODULES.items()}
"""
The key of each API, by the name of its module of messages.
"""


def api_request(api: str, /, **values: Any) -> Message:
    """
    The request of an API, named as its module: ``create_topics``.
    """
    return build(REQUESTS[API_KEYS[api]], **values)


def build(message: type[M], /, **values: Any) -> M:
    """
    Build a message. A dict stands for a nested message, and any iterable for an array.
    """
    types = {field.name: field.type for field in fields(message)}
    return message(**{name: _value(types[name], value) for name, value in values.items()})


def _value(kind: Type, value: Any) -> Any:
    if isinstance(kind, Array) and value is not None:
        return [_value(kind.element, each) for each in value]
    if isinstance(kind, Struct) and isinstance(value, Mapping):
        return build(kind.cls, **value)
    return value


def named(topic: str | UUID) -> dict[str, Any]:
    return {"topic_id": topic} if isinstance(topic, UUID) else {"name": topic}
