"""
Decoders of the keys and values of a topic.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias

from barnabas.protocol.records.batch.legacy import LegacyRecord
from barnabas.protocol.records.record import RecordReader
from barnabas.protocol.structs import struct
from barnabas.storage.dump.java_text import json_text, utf8_text


@struct
class Raw:
    """
    Text that is printed without the quotes of JSON.
    """

    text: str


@struct
class Decoded:
    """
    The key and value of a record, decoded. None is not printed.

    ``text_of`` is the text of a value; a mapping becomes JSON.
    """

    key: Any = None
    value: Any = None


DumpedRecord: TypeAlias = RecordReader | LegacyRecord
"""A record of any version."""


class Decoder(Protocol):
    """
    Decodes the records of one kind of topic.
    """

    def decode(self, record: DumpedRecord) -> Decoded:
        """
        Raises:
            DumpFailure: Kafka's tool ends at this record.
        """


def text_of(value: Any) -> str:
    """
    The text of *value*, which is not None.
    """
    if isinstance(value, Raw):
        return value.text
    if isinstance(value, bytes):
        return utf8_text(value)
    return json_text(value)
