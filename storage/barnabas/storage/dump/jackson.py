"""
JSON as the Jackson library writes it, for Apache Kafka and here: no blanks, text unescaped.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from barnabas.storage.dump.java_text import bool_text, double_text
from barnabas.storage.uuids import uuid_text

_ESCAPED: Final = re.compile(r'["\\\x00-\x1f]')
_SHORT: Final = {
    '"': '\\"',
    "\\": "\\\\",
    "\b": "\\b",
    "\t": "\\t",
    "\n": "\\n",
    "\f": "\\f",
    "\r": "\\r",
}


def json_text(value: Any) -> str:
    """
    *value* in JSON: bytes in base64, a UUID as Kafka writes it, NaN in quotes.
    """
    if isinstance(value, str):
        return f'"{_ESCAPED.sub(_escape, value)}"'
    if isinstance(value, int) and not isinstance(value, bool):
        return int.__repr__(value)
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{json_text(k)}:{json_text(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(json_text, value)) + "]"
    return _scalar_text(value)


def _scalar_text(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return bool_text(value)
    if isinstance(value, UUID):
        return f'"{uuid_text(value)}"'
    if isinstance(value, bytes):
        return f'"{b64encode(value).decode()}"'
    assert isinstance(value, float), f"a {type(value).__name__} does not occur in a record"
    text = double_text(value)
    return text if text[-1].isdigit() else f'"{text}"'


def _escape(match: re.Match[str]) -> str:
    character = match.group()
    return _SHORT.get(character) or f"\\u{ord(character):04X}"
