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

from barnabas.pipeline.values.avro.schema import parse
from barnabas.pipeline.values.avro.writing import for_fastavro
from barnabas.pipeline.values.errors import MalformedValues, UnusableSchema
from barnabas.pipeline.values.json_schema import JsonWriter
from barnabas.pipeline.values.registry import FetchedSchema

Encode = Callable[[Any], bytes]
Encoder = Callable[[pa.DataType], Encode]
"""
Makes the function that encodes a row of a column of a type.
"""

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
    encoder_of, front = made(schema), b"\0" + schema_id.to_bytes(4, "big")

    def encode_column(column: pa.Array) -> pa.Array:
        encode = encoder_of(column.type)
        try:
            rows = column.to_pylist()
        except (ValueError, OverflowError) as error:
            raise MalformedValues(f"A row does not fit its schema: {error}") from None
        return pa.array([None if row is None else front + encode(row) for row in rows], pa.binary())

    return encode_column


def _avro(schema: FetchedSchema) -> Encoder:
    convert = for_fastavro(parse(schema.text, schema.references))
    named: dict[str, Any] = {}
    for _, text in schema.references:
        fastavro.parse_schema(json.loads(text), named_schemas=named)
    parsed = fastavro.parse_schema(json.loads(schema.text), named_schemas=named)

    def encode(row: Any) -> bytes:
        file = BytesIO()
        try:
            fastavro.schemaless_writer(file, parsed, convert(row))
        except (TypeError, ValueError, KeyError, AttributeError, OverflowError) as error:
            raise MalformedValues(f"A row does not fit its schema: {error}") from None
        return file.getvalue()

    return lambda _: encode


def _json(schema: FetchedSchema) -> Encoder:
    written = JsonWriter(schema)

    def encoder_of(kind: pa.DataType) -> Encode:
        convert = written.converter(kind)

        def encode(row: Any) -> bytes:
            try:
                return json.dumps(convert(row), ensure_ascii=False, allow_nan=False).encode()
            except (TypeError, ValueError) as error:
                raise MalformedValues(f"A row is no JSON of its schema: {error}") from None

        return encode

    return encoder_of


def _protobuf(schema: FetchedSchema) -> Encoder:
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

    return lambda _: encode
