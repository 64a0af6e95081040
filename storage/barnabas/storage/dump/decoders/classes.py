"""
The decoders that the user names by the Java classes of Apache Kafka.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from struct import Struct
from typing import Any, Final

from barnabas.storage.dump.decoders import Decoded, DumpedRecord, Raw
from barnabas.storage.dump.failure import DumpFailure
from barnabas.storage.dump.options import STRING_DECODER

PACKAGE: Final = "org.apache.kafka.tools.api."

FromBytes = Callable[[bytes], Any]


def _string(data: bytes) -> Any:
    return data


def _hexadecimal(data: bytes) -> Any:
    """
    Bytes in hexadecimal. Kafka's tool prints the useless address of the array.
    """
    return Raw(data.hex())


def _number(format_: Struct, data: bytes) -> int:
    """
    The number at the beginning of *data*.
    """
    if len(data) < format_.size:
        raise DumpFailure("java.nio.BufferUnderflowException")
    number: int = format_.unpack_from(data)[0]
    return number


_CLASSES: Final[Mapping[str, FromBytes]] = {
    STRING_DECODER: _string,
    PACKAGE + "IntegerDecoder": partial(_number, Struct(">i")),
    PACKAGE + "LongDecoder": partial(_number, Struct(">q")),
    PACKAGE + "DefaultDecoder": _hexadecimal,
}


class ClassDecoder:
    """
    Decodes key and value by one class each.

    Raises:
        DumpFailure: no decoder has this name.
    """

    def __init__(self, key_class: str, value_class: str) -> None:
        self._value = _class(value_class)
        self._key = _class(key_class)

    def decode(self, record: DumpedRecord) -> Decoded:
        key = record.key()
        value = record.value()
        return Decoded(
            None if key is None else self._key(key), None if value is None else self._value(value)
        )


def _class(name: str) -> FromBytes:
    found = _CLASSES.get(name)
    if found is None:
        raise DumpFailure("java.lang.RuntimeException", "Failed to load decoder class")
    return found
