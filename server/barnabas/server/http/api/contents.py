"""
The contents of records as text.
"""

from __future__ import annotations

import json
from typing import Annotated, Final, Literal, TypedDict

LONGEST_JSON: Final = 256 << 10
"""Of more bytes it is not found out whether they are JSON."""


class ContentView(TypedDict):
    """
    A key, a value, or the value of a header.
    """

    format: Literal["json", "text", "hex"]
    text: Annotated[str, "as it is stored if it is UTF-8, else two digits for each byte"]
    is_cut: Annotated[bool, "whether there is more of it"]


def content_view(data: bytes | memoryview | None, most_bytes: int) -> ContentView | None:
    """
    The first *most_bytes* of *data*.
    """
    if data is None:
        return None
    is_cut = len(data) > most_bytes
    text = _decoded(bytes(data[:most_bytes]), is_cut)
    if text is None:
        return {"format": "hex", "text": bytes(data[:most_bytes]).hex(), "is_cut": is_cut}
    return {"format": "json" if _is_json(data) else "text", "text": text, "is_cut": is_cut}


def _decoded(data: bytes, is_cut: bool) -> str | None:
    """
    *data* as text; a character that is cut is left out. None if they are not text.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        if not is_cut or len(data) - error.start > 3:  # no character is longer
            return None
        text = data[: error.start].decode()
    return None if "\0" in text else text


def _is_json(data: bytes | memoryview) -> bool:
    """
    Whether *data* is an object or a list.
    """
    if not len(data) or len(data) > LONGEST_JSON or data[0] not in b"{[ \t\r\n":
        return False
    try:
        return isinstance(json.loads(bytes(data)), dict | list)
    except (ValueError, RecursionError):
        return False
