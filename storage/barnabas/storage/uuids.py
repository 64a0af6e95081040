"""
UUIDs as Kafka writes them in text: the 16 bytes in URL-safe base64 without padding, 22 characters.
"""

from __future__ import annotations

import base64
import os
from typing import Final
from uuid import UUID

ZERO_UUID: Final = UUID(int=0)
"""No UUID at all."""
METADATA_TOPIC_ID: Final = UUID(int=1)

_SIZE: Final = 16
_TEXT_LENGTH: Final = 22


def uuid_text(value: UUID) -> str:
    return base64.urlsafe_b64encode(value.bytes).decode()[:_TEXT_LENGTH]


def parse_uuid(text: str) -> UUID:
    """
    Raises:
        ValueError: *text* is no UUID.
    """
    padded = text if "=" in text else text + "=" * (-len(text) % 4)
    try:
        if "+" in text or "/" in text:
            raise ValueError("it is not of the URL-safe alphabet")
        data = base64.b64decode(padded.encode("ascii"), altchars=b"-_", validate=True)
    except ValueError as error:
        raise ValueError(f"{text!r} is not a base64 UUID: {error}") from None
    if len(data) != _SIZE:
        raise ValueError(f"{text!r} decodes to {len(data)} bytes, not to 16")
    return UUID(bytes=data)


def random_uuid() -> UUID:
    """
    A new UUID. Its text does not begin with a dash: on a command line it would look like an option.
    """
    while True:
        data = bytearray(os.urandom(_SIZE))
        data[6] = data[6] & 0x0F | 0x40  # version 4
        data[8] = data[8] & 0x3F | 0x80  # variant of RFC 9562
        value = UUID(bytes=bytes(data))
        if not uuid_text(value).startswith("-"):
            return value
