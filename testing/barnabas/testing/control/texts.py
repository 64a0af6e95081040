"""
Bytes in JSON: text where they are UTF-8, else base64 in a field of its own.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from typing import Any

from barnabas.server.http.guard import Refused

SUFFIX = "_base64"


def to_bytes(name: str, text: str | None, base64: str | None) -> bytes | None:
    """
    The bytes of the field *name*, or of the other one; None if neither has any.

    Raises:
        Refused: both are given, or one cannot be decoded.
    """
    if text is not None and base64 is not None:
        raise Refused(400, f"there are both {name} and {name}{SUFFIX}: one of them is enough")
    try:
        if base64 is not None:
            return b64decode(base64, validate=True)
        return None if text is None else text.encode()
    except NotBase64 as error:
        raise Refused(400, f"{name}{SUFFIX} is not base64: {error}") from None
    except UnicodeEncodeError:
        raise Refused(400, f"{name} has half of a character (a surrogate alone)") from None


def to_fields(name: str, content: bytes | None, *, as_base64: bool) -> dict[str, Any]:
    """
    The field for bytes: *name*, or the other one if they are not UTF-8 or *as_base64* says so.
    """
    if content is None:
        return {name: None}
    if not as_base64:
        try:
            return {name: content.decode()}
        except UnicodeDecodeError:
            pass
    return {f"{name}{SUFFIX}": b64encode(content).decode()}
