"""
From rows to values as the serializers of confluent-kafka write them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from io import BytesIO
from typing import Any

import fastavro
import pyarrow as pa

from barnabas.pipeline.values.avro.schema import AvroType, parse
from barnabas.pipeline.values.errors import MalformedValues, UnusableSchema
from barnabas.pipeline.values.registry import FetchedSchema

Encode = Callable[[Any], bytes]

_FIRST_MESSAGE = b"\0"


def encoder(schema: FetchedSchema, schema_id: int) -> Callable[[pa.Array], pa.Array]:
    """
    What makes a column of bytes of a column: the id in front, as a schema registry has it. A null
    stays null.

    Raises:
        UnusableSchema: values of *schema* cannot be written.
    """
    made = {"AVRO": _avro, "JSON": _json, "PROTOBUF": _protobuf}.get(schema.kind)
    if made is None:
        raise UnusableSchema(f"There is no encoder for schemas of type {schema.kind}.")
    encode, front = made(schema), b"\0" + schema_id.to_bytes(4, "big")

    def encode_column(column: pa.Array) -> pa.Array:
        rows = column.to_pylist()
        return pa.array([None if row is None else front + encode(row) for row in rows], pa.binary())

    return encode_column


def _avro(schema: FetchedSchema) -> Encode:
    kind = parse(schema.text, schema.references)
    named: dict[str, Any] = {}
    for _, text in schema.references:
        fastavro.parse_schema(json.loads(text), named_schemas=named)
    parsed = fastavro.parse_schema(json.loads(schema.text), named_schemas=named)

    def encode(row: Any) -> bytes:
        file = BytesIO()
        try:
            fastavro.schemaless_writer(file, parsed, _for_avro(kind, row))
        except (TypeError, ValueError, KeyError, AttributeError, OverflowError) as error:
            raise MalformedValues(f"A row does not fit its schema: {error!r}") from None
        return file.getvalue()

    return encode


def _for_avro(kind: AvroType, value: Any) -> Any:
    """
    A value of a column as fastavro takes it: maps are dictionaries, a union is its value.
    """
    if value is None:
        return None
    match kind.kind:
        case "record":
            return {
                field.name: _for_avro(field.type, value[field.name])
                for field in kind.fields
                if field.name in value
            }
        case "array" if kind.items is not None:
            return [_for_avro(kind.items, item) for item in value]
        case "map" if kind.items is not None:
            return {name: _for_avro(kind.items, item) for name, item in value}
        case "union":
            return _of_union(kind, value)
    return value


def _of_union(kind: AvroType, value: Any) -> Any:
    if not kind.is_struct_of_members:
        return _for_avro(kind.members[0], value)
    for number, member in enumerate(kind.members):
        if value[f"member{number}"] is not None:
            return _for_avro(member, value[f"member{number}"])
    return None


def _json(_: FetchedSchema) -> Encode:
    def encode(row: Any) -> bytes:
        try:
            return json.dumps(_without_pairs(row), ensure_ascii=False).encode()
        except TypeError as error:
            raise MalformedValues(f"A row is no JSON: {error}") from None

    return encode


def _without_pairs(value: Any) -> Any:
    """
    A value without fields that are null, which JSON leaves out, and with maps as objects.
    """
    if isinstance(value, dict):
        return {name: _without_pairs(item) for name, item in value.items() if item is not None}
    if isinstance(value, list):
        if value and all(isinstance(item, tuple) for item in value):
            return {name: _without_pairs(item) for name, item in value}
        return [_without_pairs(item) for item in value]
    return value


def _protobuf(schema: FetchedSchema) -> Encode:
    # Only where it is needed: the package is not part of all that write Avro.
    from google.protobuf.message_factory import GetMessageClass  # noqa: PLC0415

    from barnabas.pipeline.values.protobuf import ProtobufFile, ProtobufFill  # noqa: PLC0415

    message = ProtobufFile(schema).message([0])
    make, fill = GetMessageClass(message), ProtobufFill(message)

    def encode(row: Any) -> bytes:
        made = make()
        try:
            fill(made, row)
        except (TypeError, ValueError, KeyError) as error:
            raise MalformedValues(f"A row is no message {message.full_name}: {error}") from None
        return _FIRST_MESSAGE + bytes(made.SerializeToString())

    return encode
