"""
Records of internal topics as JSON, with Kafka's errors for broken ones.

The codec of ``protocol`` decodes the same bytes into objects, faster, and has errors of its own. A
dump has Kafka's names of the fields, reads any version that a record claims, and repeats Kafka's
errors. So it reads the bytes itself, with the same declarations (Kafka's generated ``read`` methods
and JSON converters).
"""

from __future__ import annotations

from functools import cache
from struct import Struct as Format
from typing import Any, Final
from uuid import UUID

from barnabas.protocol.codec.schema import Array, Field, Fixed, Kind, Message, Struct, Type, fields
from barnabas.protocol.errors import InvalidRecord
from barnabas.protocol.records.varints import int32
from barnabas.storage.dump.decoders import DumpedRecord
from barnabas.storage.dump.failure import ILLEGAL_ARGUMENT, DumpFailure
from barnabas.storage.dump.java_text import utf8_text

_LONGEST_STRING: Final = 0x7FFF
_NAMES: Final = {"kraft_version": "kRaftVersion", "kraft_version_feature": "kRaftVersionFeature"}
_INT8: Final = Format(">b")
_INT16: Final = Format(">h")
_INT32: Final = Format(">i")
_UUID_BYTES: Final = 16


class BadMessage(Exception):
    """
    The bytes are not the expected message.

    Args:
        text: the message of Kafka's exception; None where it has none.
        kind: the Java class of that exception, if it ends the tool.
    """

    def __init__(self, text: str | None = None, kind: str = "java.lang.RuntimeException") -> None:
        super().__init__("null" if text is None else text)
        self.text = text
        self.kind = kind


def _ends_early() -> BadMessage:
    return BadMessage(kind="java.nio.BufferUnderflowException")


def contents_of(record: DumpedRecord) -> tuple[bytes | None, bytes | None]:
    """
    Key and value of a record, at a place where Kafka continues after an error.

    Raises:
        BadMessage: key or value end behind the record, which is possible in versions 0 and 1.
    """
    try:
        return record.key(), record.value()
    except InvalidRecord as error:
        raise BadMessage(DumpFailure.of(error).reason) from error


class MessageReader:
    """
    Reads messages from bytes.
    """

    __slots__ = ("data", "position")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.position = 0

    @property
    def remaining(self) -> int:
        return len(self.data) - self.position

    def read_int16(self) -> int:
        """
        Raises:
            BadMessage: the data end too early.
        """
        number: int = self._unpack(_INT16)
        return number

    def read_uvarint(self) -> int:
        """
        Raises:
            BadMessage: the number is cut or too long.
        """
        raw = 0
        for shift in range(0, 35, 7):
            if self.position >= len(self.data):
                raise _ends_early()
            byte = self.data[self.position]
            self.position += 1
            raw |= (byte & 0x7F) << shift
            if byte < 0x80:
                return int32(raw)
        raise BadMessage(
            "Varint is too long, the most significant bit in the 5th byte is set, converted value: "
            f"{raw & 0xFFFFFFFF:x}",
            ILLEGAL_ARGUMENT,
        )

    def read(self, cls: type[Message], version: int) -> dict[str, Any]:
        """
        A message, as a dictionary in the order of its declaration. An unknown later version is read
        like the latest one.

        Raises:
            BadMessage: the bytes are not such a message.
        """
        version = max(version, 0)
        return self._struct(cls, version, cls.api.is_flexible(version), cls.api.versions.stop - 1)

    def _struct(self, cls: type, version: int, flexible: bool, last: int) -> dict[str, Any]:
        declared = fields(cls)
        values = {
            field.name: self._value(field, field.type, version, flexible, last)
            for field in declared
            if field.tag is None and field.is_in(version)
        }
        if flexible:
            self._tagged(declared, version, last, values)
        return {
            json_name(field.name): values[field.name] for field in declared if field.name in values
        }

    def _tagged(
        self, declared: tuple[Field, ...], version: int, last: int, values: dict[str, Any]
    ) -> None:
        known = {f.tag: f for f in declared if f.tag is not None and f.is_in(version)}
        for _ in range(self.read_uvarint()):
            tag, size = self.read_uvarint(), self.read_uvarint()
            field = known.get(tag)
            if field is None:
                self._bytes(size)
                continue
            values[field.name] = self._value(field, field.type, version, True, last)
        for field in known.values():
            if field.name in values and values[field.name] == _as_read(field.default):
                del values[field.name]

    def _value(self, field: Field, kind: Type, version: int, flexible: bool, last: int) -> Any:
        if isinstance(kind, Fixed):
            return self._unpack(_format(kind.format))
        if isinstance(kind, Array):
            return self._array(field, kind, version, flexible, last)
        if isinstance(kind, Struct):
            return self._nested(field, kind, version, flexible, last)
        if kind is Kind.UUID:
            return UUID(bytes=self._exactly(_UUID_BYTES))
        return self._sized(field, kind, version, flexible)

    def _nested(self, field: Field, kind: Struct, version: int, flexible: bool, last: int) -> Any:
        if field.is_nullable_in(version):
            present = self.read_uvarint() > 0 if field.tag is not None else self._unpack(_INT8) >= 0
            if not present:
                return None
        if version > last:
            raise BadMessage(
                f"Can't read version {version} of {kind.cls.__name__}",
                "org.apache.kafka.common.errors.UnsupportedVersionException",
            )
        return self._struct(kind.cls, version, flexible, last)

    def _array(self, field: Field, kind: Array, version: int, flexible: bool, last: int) -> Any:
        count = self.read_uvarint() - 1 if flexible else self._unpack(_INT32)
        if count < 0:
            return self._null(field, version)
        if count > self.remaining:
            raise BadMessage(
                f"Tried to allocate a collection of size {count}, but there are only "
                f"{self.remaining} bytes remaining."
            )
        element = field._replace(name=f"{field.name} element", nullable=None)
        return [self._value(element, kind.element, version, flexible, last) for _ in range(count)]

    def _sized(self, field: Field, kind: Kind, version: int, flexible: bool) -> Any:
        if flexible and field.compact:
            size = self.read_uvarint() - 1
        else:
            size = self._unpack(_INT16 if kind is Kind.STRING else _INT32)
        if size < 0:
            return self._null(field, version)
        if kind is Kind.STRING and size > _LONGEST_STRING:
            raise BadMessage(f"string field {json_name(field.name)} had invalid length {size}")
        data = self._bytes(size)
        return utf8_text(data) if kind is Kind.STRING else data

    @staticmethod
    def _null(field: Field, version: int) -> None:
        if not field.is_nullable_in(version):
            raise BadMessage(f"non-nullable field {json_name(field.name)} was serialized as null")

    def _bytes(self, size: int) -> bytes:
        if size > self.remaining:
            raise BadMessage(
                f"Error reading byte array of {size} byte(s): only {self.remaining} byte(s) "
                "available"
            )
        if size < 0:
            raise BadMessage(str(size), "java.lang.NegativeArraySizeException")
        return self._exactly(size)

    def _exactly(self, size: int) -> bytes:
        if size > self.remaining:
            raise _ends_early()
        self.position += size
        return self.data[self.position - size : self.position]

    def _unpack(self, format_: Format) -> Any:
        return format_.unpack(self._exactly(format_.size))[0]


def _as_read(default: Any) -> Any:
    """
    The default of a field, in the form of a value that was read.
    """
    if not hasattr(type(default), "__match_args__"):
        return default
    return {json_name(field.name): getattr(default, field.name) for field in fields(type(default))}


@cache
def json_name(name: str) -> str:
    """
    Kafka's name of a field in JSON.
    """
    if name in _NAMES:
        return _NAMES[name]
    first, *others = name.split("_")
    return first + "".join(other.capitalize() for other in others)


@cache
def _format(letter: str) -> Format:
    return Format(f">{letter}")
