"""
Messages of Protobuf as columns. Types are those of Apache Spark's Protobuf package.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2
from hypothesis import given
from hypothesis import strategies as st

from barnabas.pipeline.values.decoding import ValueDecoder
from barnabas.pipeline.values.errors import MalformedValues, UnusableSchema
from barnabas.pipeline.values.protobuf import ProtobufFile, protobuf_reader, protobuf_type
from barnabas.pipeline.values.registry import FetchedSchema, RegistryAddress
from tests.pipeline.values.messages import F, classes, field, file, message
from tests.support.schema_registry import SchemaRegistry

NUMBERS = {
    "double": (F.TYPE_DOUBLE, 0.5, pa.float64()),
    "float": (F.TYPE_FLOAT, 0.5, pa.float32()),
    "int32": (F.TYPE_INT32, -(2**31), pa.int32()),
    "int64": (F.TYPE_INT64, -(2**63), pa.int64()),
    "uint32": (F.TYPE_UINT32, 2**32 - 1, pa.int64()),
    "uint64": (F.TYPE_UINT64, 2**64 - 1, pa.decimal128(20, 0)),
    "sint32": (F.TYPE_SINT32, -5, pa.int32()),
    "sint64": (F.TYPE_SINT64, -5, pa.int64()),
    "fixed32": (F.TYPE_FIXED32, 2**32 - 1, pa.int64()),
    "fixed64": (F.TYPE_FIXED64, 2**64 - 1, pa.decimal128(20, 0)),
    "sfixed32": (F.TYPE_SFIXED32, -5, pa.int32()),
    "sfixed64": (F.TYPE_SFIXED64, -5, pa.int64()),
    "bool": (F.TYPE_BOOL, True, pa.bool_()),
    "string": (F.TYPE_STRING, "ü", pa.string()),
    "bytes": (F.TYPE_BYTES, b"\xff", pa.binary()),
}
SIMPLE = file(
    "simple.proto",
    [
        message(
            "M", [field(name, n + 1, kind) for n, (name, (kind, *_)) in enumerate(NUMBERS.items())]
        )
    ],
)


def schema_of(
    one: descriptor_pb2.FileDescriptorProto, *references: descriptor_pb2.FileDescriptorProto
) -> FetchedSchema:
    def text(of: descriptor_pb2.FileDescriptorProto) -> str:
        return base64.b64encode(of.SerializeToString()).decode()

    return FetchedSchema("PROTOBUF", text(one), tuple((r.name, text(r)) for r in references))


def column(written: FetchedSchema, payloads: Sequence[bytes], message_name: str = "M") -> pa.Array:
    one = ProtobufFile(written)
    read = protobuf_reader(one, one.named(message_name), b"")
    ends = np.cumsum([len(payload) for payload in payloads])
    starts = ends - [len(payload) for payload in payloads]
    return read(np.frombuffer(b"".join(payloads), np.uint8), starts, ends)


def test_protobuf_scalars_have_columns() -> None:
    """
    A missing zero is read as zero.
    """
    made = classes(SIMPLE)["shop.M"]
    values = {name: value for name, (_, value, _) in NUMBERS.items()}

    found = column(schema_of(SIMPLE), [b"\0" + made(**values).SerializeToString(), b"\0"])

    assert [kind for _, _, kind in NUMBERS.values()] == [f.type for f in found.type]
    full, empty = found.to_pylist()
    assert values == {
        name: int(value) if isinstance(value, Decimal) else value for name, value in full.items()
    }
    assert {name: type(value)() for name, value in values.items()} == empty


RICH = file(
    "rich.proto",
    [
        message(
            "M",
            [
                field("at", 1, "google.protobuf.Timestamp"),
                field("took", 2, "google.protobuf.Duration"),
                field("state", 3, "shop.State", type=F.TYPE_ENUM),
                field("counts", 4, "shop.M.CountsEntry", repeated=True),
                field("parts", 5, "shop.M.PartsEntry", repeated=True),
                field("maybe", 6, F.TYPE_INT32, proto3_optional=True, oneof_index=1),
                field("a", 7, F.TYPE_STRING, oneof_index=0),
                field("b", 8, F.TYPE_INT32, oneof_index=0),
                field("states", 9, "shop.State", type=F.TYPE_ENUM, repeated=True),
                field("part", 10, "shop.M.Part"),
                field("nothing", 11, "shop.M.Empty"),
            ],
            nested_type=[
                message("Part", [field("size", 1, F.TYPE_UINT64)]),
                message("Empty", []),
                message(
                    "CountsEntry",
                    [field("key", 1, F.TYPE_STRING), field("value", 2, F.TYPE_INT64)],
                    options={"map_entry": True},
                ),
                message(
                    "PartsEntry",
                    [field("key", 1, F.TYPE_INT32), field("value", 2, "shop.M.Part")],
                    options={"map_entry": True},
                ),
            ],
            oneof_decl=[{"name": "choice"}, {"name": "_maybe"}],
        )
    ],
    dependency=["google/protobuf/timestamp.proto", "google/protobuf/duration.proto"],
    enum_type=[
        {"name": "State", "value": [{"name": "OPEN", "number": 0}, {"name": "SHUT", "number": 2}]}
    ],
)


def test_protobuf_types_map_to_spark_types() -> None:
    made = classes(RICH)["shop.M"]
    value = made(
        at={"seconds": -1, "nanos": 7000},
        took={"seconds": 5, "nanos": 1000},
        state=2,
        counts={"x": 1},
        parts={7: {"size": 3}},
        b=0,
        states=[0, 9],
    )

    found = column(schema_of(RICH), [b"\0" + value.SerializeToString(), b"\0"])

    full, empty = found.to_pylist()
    assert {
        "at": datetime(1969, 12, 31, 23, 59, 59, 7, UTC),
        "took": timedelta(seconds=5, microseconds=1),
        "state": "SHUT",
        "counts": [("x", 1)],
        "parts": [(7, {"size": 3})],
        "maybe": None,
        "a": None,
        "b": 0,
        "states": ["OPEN", "9"],
        "part": None,
    } == full
    assert {
        **dict.fromkeys(full),
        "state": "OPEN",
        "counts": [],
        "parts": [],
        "states": [],
    } == empty


def test_nested_message_is_found_by_its_index_path() -> None:
    payload = bytes([4, 0, 0])  # Two numbers: 0, 0.

    assert [{"size": 0}] == column(schema_of(RICH), [payload], "M.Part").to_pylist()
    assert [{"size": 0}] == column(schema_of(RICH), [payload], "shop.M.Part").to_pylist()


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b"", "does not say which message"),
        (b"\x02", "does not say which message"),
        (b"\x03", "does not say which message"),
        (b"\xff\xff\xff\xff\xff\xff\xff", "does not say which message"),
        (b"\x02\x02", "has no message 1"),
        (b"\x04\x00\x14", "has no message 10 in it"),
        (b"\x04\x00\x00", "is the message shop.M.Part, and shop.M is read"),
        (b"\x00\x0a\x05", "is no message shop.M"),
    ],
)
def test_malformed_message_is_reported(payload: bytes, reason: str) -> None:
    with pytest.raises(MalformedValues, match=reason):
        column(schema_of(RICH), [b"\0", payload])


@given(payload=st.binary(max_size=30))
def test_any_bytes_are_decoded_or_malformed(payload: bytes) -> None:
    try:
        found = column(schema_of(RICH), [payload])
    except MalformedValues:
        return
    assert 1 == len(found)


NODE = file("node.proto", [message("M", [field("next", 1, "shop.M")])])
EMPTY = file("empty.proto", [message("M", [])])
FAR = file("far.proto", [message("M", [])], dependency=["google/type/nothing.proto"])


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (schema_of(NODE), "shop.M contains itself"),
        (schema_of(EMPTY), "has no fields"),
        (schema_of(FAR), "imports google/type/nothing.proto, which is not installed"),
        (FetchedSchema("PROTOBUF", 'syntax = "proto3"; message M {}'), "gives the text"),
        (schema_of(file("x.proto", [message("M", [field("x", 1, "shop.N")])])), "cannot be used"),
    ],
)
def test_schemas_without_columns_are_refused(schema: FetchedSchema, reason: str) -> None:
    with pytest.raises(UnusableSchema, match=reason):
        protobuf_type(ProtobufFile(schema).named("M"))


def test_imported_protobuf_files_come_from_the_registry(registry: SchemaRegistry) -> None:
    part = file("part.proto", [message("Part", [field("size", 1, F.TYPE_INT32)])])
    middle = file(
        "middle.proto",
        [message("Middle", [field("part", 1, "shop.Part")])],
        dependency=["part.proto"],
    )
    whole = file(
        "whole.proto",
        [message("M", [field("part", 1, "shop.Part"), field("middle", 2, "shop.Middle")])],
        dependency=["middle.proto", "part.proto"],
    )
    made: Any = classes(part, middle, whole)["shop.M"]
    with SchemaRegistryClient({"url": registry.url}) as client:
        serialize = ProtobufSerializer(made, client, {"use.deprecated.format": False})
        context = SerializationContext("parts", MessageField.VALUE)
        value = serialize(made(middle={"part": {"size": 3}}), context)

    with RegistryAddress.of(registry.url).open() as opened:
        decoder = ValueDecoder(opened, opened.version("parts-value"))
        found = decoder.decode(pa.array([value, None]))

    assert {} == found.errors
    assert [{"part": None, "middle": {"part": {"size": 3}}}, None] == found.column.to_pylist()
