"""
What the keys and values of a topic mean.
"""

from __future__ import annotations

from typing import Any, Protocol

from barnabas.protocol.structs import struct
from barnabas.storage.dump.java_text import json_text, utf8_text


@struct
class Raw:
    """
    Text that is shown as it is, where JSON would be put in quotes.
    """

    text: str


@struct
class Decoded:
    """
    What a decoder makes of a record. None is for nothing to show.

    A mapping is shown as JSON; what else there is, as ``text_of`` has it.
    """

    key: Any = None
    value: Any = None


class DumpedRecord(Protocol):
    """
    A record of any version.
    """

    @property
    def offset(self) -> int: ...

    @property
    def key_size(self) -> int: ...

    def key(self) -> bytes | None: ...

    def value(self) -> bytes | None: ...


class Decoder(Protocol):
    """
    Understands the records of one kind of topic.
    """

    def decode(self, record: DumpedRecord) -> Decoded:
        """
        Raises:
            DumpFailure: Kafka's tool gives up on such a record.
        """


def text_of(value: Any) -> str:
    """
    How a dump shows *value*, which is not None.
    """
    if isinstance(value, Raw):
        return value.text
    if isinstance(value, bytes):
        return utf8_text(value)
    return json_text(value)
