"""
Protobuf: messages of a descriptor that the registry has, as rows.

Types are those of ``SchemaConverters`` of Apache Spark's Protobuf package, with its options
``emit.default.values`` and ``upcast.unsigned.ints``: a zero is a zero, and unsigned numbers are
never negative.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from decimal import Decimal
from importlib import import_module
from typing import Any, Final

import pyarrow as pa
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from barnabas.pipeline.schemas import TIMESTAMP
from barnabas.pipeline.values.errors import MalformedValues, UnusableSchema
from barnabas.pipeline.values.registry import FetchedSchema
from barnabas.pipeline.values.rows import ReadColumn, one_by_one

Convert = Callable[[Any], Any]

_FILE: Final = "default"
_BUILT_IN: Final = {
    "google/protobuf/": "",
    "google/type/": "",
    "confluent/": "confluent_kafka.schema_registry.",
}
"""Where the modules are that have the descriptors of files which no registry keeps."""
_MOST_INDEXES: Final = 64
_US: Final = 1_000_000
_NS_PER_US: Final = 1000
_UINT64: Final = pa.decimal128(20, 0)

_SCALARS: Final = {
    FieldDescriptor.TYPE_DOUBLE: pa.float64(),
    FieldDescriptor.TYPE_FLOAT: pa.float32(),
    FieldDescriptor.TYPE_INT64: pa.int64(),
    FieldDescriptor.TYPE_UINT64: _UINT64,
    FieldDescriptor.TYPE_INT32: pa.int32(),
    FieldDescriptor.TYPE_FIXED64: _UINT64,
    FieldDescriptor.TYPE_FIXED32: pa.int64(),
    FieldDescriptor.TYPE_BOOL: pa.bool_(),
    FieldDescriptor.TYPE_STRING: pa.string(),
    FieldDescriptor.TYPE_BYTES: pa.binary(),
    FieldDescriptor.TYPE_UINT32: pa.int64(),
    FieldDescriptor.TYPE_ENUM: pa.string(),
    FieldDescriptor.TYPE_SFIXED32: pa.int32(),
    FieldDescriptor.TYPE_SFIXED64: pa.int64(),
    FieldDescriptor.TYPE_SINT32: pa.int32(),
    FieldDescriptor.TYPE_SINT64: pa.int64(),
}


class ProtobufFile:
    """
    The messages of one schema.
    """

    def __init__(self, schema: FetchedSchema) -> None:
        """
        Raises:
            UnusableSchema: it is no descriptor, or what it imports is missing.
        """
        self._pool = DescriptorPool()
        for name, text in schema.references:
            self._add(_proto(name, text))
        proto = _proto(_FILE, schema.text)
        self._add(proto)
        self._file = self._pool.FindFileByName(_FILE)
        # In the order of the file, which is what a value counts by.
        self._messages = [message.name for message in proto.message_type]

    def message(self, indexes: Sequence[int]) -> Descriptor:
        """
        The message with that number, or inside of it with the next one.

        Raises:
            MalformedValues: there is none.
        """
        first, *inner = indexes
        if not 0 <= first < len(self._messages):
            raise MalformedValues(f"Its schema has no message {first}.")
        found = self._file.message_types_by_name[self._messages[first]]
        for index in inner:
            if not 0 <= index < len(found.nested_types):
                raise MalformedValues(
                    f"The message {found.full_name} has no message {index} in it."
                )
            found = found.nested_types[index]
        return found

    def named(self, name: str) -> Descriptor:
        """
        The message of that name, with or without its package.

        Raises:
            UnusableSchema: there is none.
        """
        package = f"{self._file.package}." if self._file.package else ""
        for full_name in (name, package + name):
            try:
                return self._pool.FindMessageTypeByName(full_name)
            except KeyError:
                continue
        raise UnusableSchema(
            f"The schema has no message {name}; it has {', '.join(self._messages)}."
        )

    def _add(self, proto: FileDescriptorProto) -> None:
        for name in proto.dependency:
            self._add_built_in(name)
        try:
            self._pool.Add(proto)
            self._pool.FindFileByName(proto.name)
        except (TypeError, KeyError) as error:
            raise UnusableSchema(f"The schema {proto.name} cannot be used: {error}") from None

    def _add_built_in(self, name: str) -> None:
        folder = next((folder for folder in _BUILT_IN if name.startswith(folder)), None)
        if folder is None or self._has(name):
            return
        module = name.removesuffix(".proto").replace("/", ".")
        try:
            descriptor = import_module(f"{_BUILT_IN[folder]}{module}_pb2").DESCRIPTOR
        except ImportError:
            raise UnusableSchema(f"The schema imports {name}, which is not installed.") from None
        proto = FileDescriptorProto()
        descriptor.CopyToProto(proto)
        self._add(proto)

    def _has(self, name: str) -> bool:
        try:
            self._pool.FindFileByName(name)
        except KeyError:
            return False
        return True


def _proto(name: str, text: str) -> FileDescriptorProto:
    try:
        proto = FileDescriptorProto.FromString(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError, DecodeError):
        raise UnusableSchema(
            "The registry gives the text of a Protobuf schema only, and not its descriptor "
            "(format=serialized)."
        ) from None
    proto.name = name
    return proto


def protobuf_type(message: Descriptor) -> pa.StructType:
    """
    The columns of *message*.

    Raises:
        UnusableSchema: it contains itself, or has no fields.
    """
    kind = _struct(message, frozenset())
    if not kind.num_fields:
        raise UnusableSchema(f"The message {message.full_name} has no fields.")
    return kind


def _struct(message: Descriptor, inside: frozenset[str]) -> pa.StructType:
    if message.full_name in inside:
        raise UnusableSchema(f"{message.full_name} contains itself, and a column cannot.")
    inside |= {message.full_name}
    kinds = [(field.name, _field_type(field, inside)) for field in message.fields]
    # Messages without fields are left out, as Spark does.
    return pa.struct([(name, kind) for name, kind in kinds if kind is not None])


def _field_type(field: FieldDescriptor, inside: frozenset[str]) -> pa.DataType | None:
    if _is_map(field):
        entry = field.message_type.fields_by_name
        value = _single_type(entry["value"], inside)
        return value and pa.map_(_single_type(entry["key"], inside), value)
    single = _single_type(field, inside)
    return single and pa.list_(single) if _is_repeated(field) else single


def _single_type(field: FieldDescriptor, inside: frozenset[str]) -> pa.DataType | None:
    if field.message_type is None:
        return _SCALARS[field.type]
    match field.message_type.full_name:
        case "google.protobuf.Timestamp":
            return TIMESTAMP
        case "google.protobuf.Duration":
            return pa.duration("us")
    struct = _struct(field.message_type, inside)
    return struct if struct.num_fields else None


def _is_repeated(field: FieldDescriptor) -> bool:
    # Protobuf 7 has no label any more.
    if hasattr(field, "is_repeated"):
        return bool(field.is_repeated)
    return bool(field.label == FieldDescriptor.LABEL_REPEATED)


def _is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def _converter(message: Descriptor, kind: pa.StructType) -> Convert:
    """
    What makes a row of a message.
    """
    names = {field.name for field in kind}
    fields = [
        (field.name, field.has_presence and not field.has_default_value, _of_field(field, kind))
        for field in message.fields
        if field.name in names
    ]

    def convert(value: Any) -> dict[str, Any]:
        row: dict[str, Any] = {}
        for name, may_be_absent, convert_field in fields:
            if may_be_absent and not value.HasField(name):
                row[name] = None
            else:
                found = getattr(value, name)
                row[name] = found if convert_field is None else convert_field(found)
        return row

    return convert


def _of_field(field: FieldDescriptor, kind: pa.StructType) -> Convert | None:
    its = kind.field(field.name).type
    if _is_map(field):
        of_value = _of_single(field.message_type.fields_by_name["value"], its.item_type)
        if of_value is None:
            return lambda found: list(found.items())
        return lambda found: [(key, of_value(value)) for key, value in found.items()]
    if _is_repeated(field):
        of_item = _of_single(field, its.value_type)
        return list if of_item is None else lambda found: [of_item(item) for item in found]
    return _of_single(field, its)


def _of_single(field: FieldDescriptor, kind: pa.DataType) -> Convert | None:
    if kind == _UINT64:
        return Decimal
    if field.enum_type is not None:
        names = {value.number: value.name for value in field.enum_type.values}
        return lambda number: names.get(number) or str(number)
    if kind in (TIMESTAMP, pa.duration("us")):
        return lambda found: found.seconds * _US + found.nanos // _NS_PER_US
    return _converter(field.message_type, kind) if field.message_type is not None else None


def protobuf_reader(written: ProtobufFile, message: Descriptor, in_header: bytes) -> ReadColumn:
    """
    What reads values of a schema as rows of *message* of another one, or of the same.

    Args:
        in_header: where the message stands in the schema that was written, if a header says so.
    """
    kind = protobuf_type(message)
    convert = _converter(message, kind)
    parse = GetMessageClass(message).FromString
    known: dict[tuple[int, ...], None] = {}

    def check(indexes: tuple[int, ...]) -> None:
        name = written.message(indexes).full_name
        if name != message.full_name:
            raise MalformedValues(f"It is the message {name}, and {message.full_name} is read.")
        known[indexes] = None

    def decode(value: bytes) -> Any:
        if in_header:
            indexes, at = read_indexes(in_header, 0)[0], 0
        else:
            indexes, at = read_indexes(value, 0)
        if indexes not in known:
            check(indexes)
        try:
            return convert(parse(value[at:]))
        except DecodeError:
            raise MalformedValues(f"It is no message {message.full_name}.") from None

    return one_by_one(decode, kind)


def read_indexes(value: bytes, at: int) -> tuple[tuple[int, ...], int]:
    """
    Where a message stands in its schema, and where in *value* the message begins.

    Raises:
        MalformedValues: there are no such numbers.
    """
    count, at = _varint(value, at)
    if count == 0:
        return (0,), at
    if not 0 < count <= _MOST_INDEXES:
        raise MalformedValues("It does not say which message of its schema it is.")
    indexes = []
    for _ in range(count):
        index, at = _varint(value, at)
        indexes.append(index)
    return tuple(indexes), at


def _varint(value: bytes, at: int) -> tuple[int, int]:
    raw = shift = 0
    while True:
        if at >= len(value) or shift > 28:
            raise MalformedValues("It does not say which message of its schema it is.")
        byte = value[at]
        at += 1
        raw |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return (raw >> 1) ^ -(raw & 1), at


class ProtobufFill:
    """
    Sets the fields of a message from a row. What is null or not in the row is not set.
    """

    def __init__(self, message: Descriptor) -> None:
        protobuf_type(message)
        self._message = message

    def __call__(self, made: Any, row: Any) -> None:
        """
        Raises:
            TypeError, ValueError: a value is none of its field.
            KeyError: there is no such field.
        """
        _fill(self._message, made, row)


def _fill(message: Descriptor, made: Any, row: Any) -> None:
    for name, value in row.items():
        if value is None:
            continue
        field = message.fields_by_name[name]
        if _is_map(field):
            _fill_map(field, getattr(made, name), value)
        elif _is_repeated(field):
            _fill_list(field, getattr(made, name), value)
        elif field.message_type is not None:
            _fill_message(field.message_type, getattr(made, name), value)
        else:
            setattr(made, name, _scalar(field, value))


def _fill_map(field: FieldDescriptor, into: Any, value: Any) -> None:
    of_value = field.message_type.fields_by_name["value"]
    for key, item in value:
        if of_value.message_type is not None:
            _fill_message(of_value.message_type, into[key], item)
        else:
            into[key] = _scalar(of_value, item)


def _fill_list(field: FieldDescriptor, into: Any, value: Any) -> None:
    for item in value:
        if field.message_type is not None:
            _fill_message(field.message_type, into.add(), item)
        else:
            into.append(_scalar(field, item))


def _fill_message(message: Descriptor, made: Any, value: Any) -> None:
    # It is there, also if none of its fields is set.
    made.SetInParent()
    match message.full_name:
        case "google.protobuf.Timestamp":
            made.FromDatetime(value)
        case "google.protobuf.Duration":
            made.FromTimedelta(value)
        case _:
            _fill(message, made, value)


def _scalar(field: FieldDescriptor, value: Any) -> Any:
    if field.enum_type is not None:
        known = field.enum_type.values_by_name
        return known[value].number if value in known else int(value)
    return int(value) if isinstance(value, Decimal) else value
