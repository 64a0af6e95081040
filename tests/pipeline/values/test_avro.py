"""
Values of Avro as columns, against fastavro, which confluent-kafka uses.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from io import BytesIO
from typing import Any, Final

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.pipeline.values.avro.resolution import read_values, reader_of
from barnabas.pipeline.values.avro.schema import parse
from barnabas.pipeline.values.errors import MalformedValues, UnusableSchema
from tests.pipeline.values.avro_types import (
    array,
    logical,
    readers,
    record,
    records,
    schemas,
    values,
)


def written(schema: Any, value: Any) -> bytes:
    file = BytesIO()
    fastavro.schemaless_writer(file, fastavro.parse_schema(schema), value)
    return file.getvalue()


def column(writer: Any, reader: Any, payloads: Sequence[bytes]) -> pa.Array:
    read = reader_of(parse(json.dumps(writer)), parse(json.dumps(reader)))
    ends = np.cumsum([len(payload) for payload in payloads])
    starts = ends - [len(payload) for payload in payloads]
    data = np.frombuffer(b"".join(payloads), np.uint8)
    found = read_values(read, data, starts, ends)
    found.validate(full=True)
    return found


def comparable(value: Any) -> Any:
    """
    Maps are lists of pairs in Arrow.
    """
    if isinstance(value, dict):
        return sorted((name, comparable(item)) for name, item in value.items())
    if isinstance(value, list):
        items = [comparable(item) for item in value]
        pairs = all(isinstance(item, tuple) for item in items)
        return sorted(items) if items and pairs else items
    return (value[0], comparable(value[1])) if isinstance(value, tuple) else value


def rows(found: pa.Array) -> list[Any]:
    return [comparable(value) for value in found.to_pylist()]


@given(data=st.data())
def test_avro_values_equal_those_of_fastavro(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    some = data.draw(st.lists(values(schema), min_size=1, max_size=6))
    payloads = [written(schema, value) for value in some]
    parsed = fastavro.parse_schema(schema)

    expected = [fastavro.schemaless_reader(BytesIO(payload), parsed, None) for payload in payloads]

    assert [comparable(value) for value in expected] == rows(column(schema, schema, payloads))


NULLS: Final = array("null")


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (["null", NULLS], [None, None]),
        (["null", NULLS], []),
        (["null", array(NULLS)], [[None, None], [], [None]]),
        (["null", {"type": "map", "values": "null"}], {"a": None, "b": None}),
        (["null", {"type": "map", "values": NULLS}], {"a": [None, None], "b": []}),
        (["null", record(f=NULLS)], {"f": [None, None]}),
    ],
)
@pytest.mark.parametrize("count", [1, 2])
def test_nullable_containers_of_nulls_keep_their_lengths(
    schema: Any, value: Any, count: int
) -> None:
    payloads = [written(schema, each) for each in [value, None][:count]]

    found = column(schema, schema, payloads)

    assert [comparable(value), None][:count] == rows(found)


@given(data=st.data())
def test_reader_schemas_are_resolved_as_in_fastavro(data: st.DataObject) -> None:
    writer = data.draw(records())
    reader = data.draw(readers(writer))
    some = data.draw(st.lists(values(writer), min_size=1, max_size=6))
    payloads = [written(writer, value) for value in some]

    parsed = fastavro.parse_schema(writer), fastavro.parse_schema(reader)
    expected = [fastavro.schemaless_reader(BytesIO(payload), *parsed) for payload in payloads]

    assert [comparable(value) for value in expected] == rows(column(writer, reader, payloads))


@given(data=st.data())
def test_truncated_value_is_malformed(data: st.DataObject) -> None:
    """
    Also inside other values, whose bytes are not taken for its own.
    """
    schema = data.draw(records())
    one, other = data.draw(values(schema)), data.draw(values(schema))
    whole = written(schema, one)
    if not whole:
        return
    kept = data.draw(st.integers(0, len(whole) - 1))

    with pytest.raises(MalformedValues):
        column(schema, schema, [written(schema, other), whole[:kept], written(schema, other)])


@given(payloads=st.lists(st.binary(max_size=40), min_size=1, max_size=4), data=st.data())
def test_any_bytes_are_decoded_or_malformed(payloads: list[bytes], data: st.DataObject) -> None:
    schema = data.draw(schemas())

    try:
        found = column(schema, schema, payloads)
    except MalformedValues:
        return
    assert len(payloads) == len(found)


NOON: Final = datetime(2026, 1, 31, 12, 0, 0, 7000)
UTC_US: Final = pa.timestamp("us", "UTC")
LOGICAL: list[tuple[Any, Any, pa.DataType]] = [
    (logical("date", "int"), date(2026, 1, 31), pa.date32()),
    (logical("timestamp-millis"), NOON.replace(year=1969, tzinfo=UTC), UTC_US),
    (logical("timestamp-micros"), NOON.replace(microsecond=7, tzinfo=UTC), UTC_US),
    (logical("local-timestamp-millis"), NOON, pa.timestamp("us")),
    (
        logical("decimal", "bytes", precision=20, scale=3),
        Decimal("-12345678901234567.891"),
        pa.decimal128(20, 3),
    ),
    (
        logical("decimal", "fixed", name="F", size=9, precision=5),
        Decimal("-12345"),
        pa.decimal128(5, 0),
    ),
]


@pytest.mark.parametrize(("schema", "value", "kind"), LOGICAL)
def test_logical_types_map_to_spark_types(schema: Any, value: Any, kind: pa.DataType) -> None:
    found = column(schema, ["null", schema], [written(schema, value)] * 2)

    assert kind == found.type
    assert [value, value] == found.to_pylist()


def test_timestamp_has_the_unit_of_the_writer() -> None:
    ms, us = logical("timestamp-millis"), logical("timestamp-micros")
    at = datetime(2026, 1, 31, 12, 0, 0, 5000, UTC)

    assert [at] == column(ms, us, [written(ms, at)]).to_pylist()
    assert [at] == column(us, ms, [written(us, at)]).to_pylist()
    assert [at] == column("long", ms, [written(ms, at)]).to_pylist()


def test_timestamp_beyond_microseconds_is_malformed() -> None:
    ms = logical("timestamp-millis")

    with pytest.raises(MalformedValues, match="too far away"):
        column(ms, ms, [written("long", 2**62)])


def test_union_of_several_types_is_a_struct_of_members() -> None:
    """
    As in Spark, null is not a member.
    """
    schema = ["string", "null", "int", array("long")]

    found = column(schema, schema, [written(schema, value) for value in ("a", None, 5, [1, 2])])

    assert [
        {"member0": "a", "member1": None, "member2": None},
        None,
        {"member0": None, "member1": 5, "member2": None},
        {"member0": None, "member1": None, "member2": [1, 2]},
    ] == found.to_pylist()


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        (["int", "long"], pa.int64()),
        (["null", "float", "double"], pa.float64()),
        (["string"], pa.string()),
    ],
)
def test_other_unions_are_simple_columns(schema: Any, kind: pa.DataType) -> None:
    assert kind == parse(json.dumps(schema)).arrow
    parsed = fastavro.parse_schema(schema)
    value = "a" if kind == pa.string() else 1

    assert [value] == column(schema, schema, [written(parsed, value)]).to_pylist()


def test_aliases_find_renamed_fields_and_records() -> None:
    writer = record("Old", a="int")
    field = {"name": "b", "aliases": ["a"], "type": "long"}
    reader = {"type": "record", "name": "New", "aliases": ["Old"], "fields": [field]}

    assert [{"b": 5}] == column(writer, reader, [written(writer, {"a": 5})]).to_pylist()


def test_unknown_enum_symbol_becomes_the_default() -> None:
    writer = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
    payloads = [written(writer, "A"), written(writer, "B")]
    reader = {"type": "enum", "name": "E", "symbols": ["A", "OTHER"], "default": "OTHER"}

    assert ["A", "OTHER"] == column(writer, reader, payloads).to_pylist()
    del reader["default"]
    with pytest.raises(MalformedValues, match="has not all symbols"):
        column(writer, reader, payloads)


NODE = record("Node", next=["null", "Node"])
REFUSED: list[tuple[Any, Any, str]] = [
    (NODE, NODE, "Node contains itself"),
    ("Other", "Other", "uses Other, which is not defined"),
    ("string", "int", "a value of type string was written"),
    (record("R"), record("S"), "the record R was written, and the record S cannot be read"),
    (
        logical("decimal", "bytes", precision=4, scale=1),
        logical("decimal", "bytes", precision=4, scale=2),
        "A decimal has 1 decimal places, and 2 are read",
    ),
    (record(), record(a="int"), "The field a of R was not written, and has no default"),
]


@pytest.mark.parametrize(("writer", "reader", "reason"), REFUSED)
def test_incompatible_schemas_are_refused(writer: Any, reader: Any, reason: str) -> None:
    with pytest.raises(UnusableSchema, match=reason):
        column(writer, reader, [])


def test_registry_may_store_a_lone_type_without_quotes() -> None:
    assert parse('"string"') == parse("string")


def test_referenced_schema_is_part_of_a_schema() -> None:
    address = record("a.Address", city="string")
    person = record("a.Person", home="Address", work="a.Address")

    found = parse(json.dumps(person), [("address", json.dumps(address))])

    city = pa.struct([("city", pa.string())])
    assert pa.struct([("home", city), ("work", city)]) == found.arrow


def test_default_of_bytes_has_one_byte_per_character() -> None:
    """
    The specification says so; fastavro returns a string.
    """
    decimal = logical("decimal", "bytes", precision=4, scale=2)
    reader = record(raw=("bytes", "\u00ff\u0001"), price=(decimal, "\u0001\u0002"))

    found = column(record(), reader, [b""])

    assert [{"raw": b"\xff\x01", "price": Decimal("2.58")}] == found.to_pylist()


DEFAULTS: list[tuple[Any, Any, Any]] = [
    (logical("timestamp-millis"), 7, datetime(1970, 1, 1, 0, 0, 0, 7000, UTC)),
    (logical("date", "int"), 1, date(1970, 1, 2)),
    (array(["null", "int"]), [None, 1], [None, 1]),
    ({"type": "map", "values": "string"}, {"a": "b"}, [("a", "b")]),
    (["string", "int"], "a", {"member0": "a", "member1": None}),
    (
        record("Inner", given="int", own=("string", "x")),
        {"given": 1},
        {"given": 1, "own": "x"},
    ),
]


@pytest.mark.parametrize(("schema", "default", "value"), DEFAULTS)
def test_default_has_the_type_of_its_column(schema: Any, default: Any, value: Any) -> None:
    found = column(record(), record(a=(schema, default)), [b"", b""])

    assert [{"a": value}] * 2 == found.to_pylist()


@pytest.mark.parametrize(("schema", "default"), [("int", "a"), (array("int"), 5), ("bytes", 5)])
def test_invalid_default_is_refused(schema: Any, default: Any) -> None:
    with pytest.raises(UnusableSchema, match=f"The default {default!r} is no "):
        column(record(), record(a=(schema, default)), [b""])


def test_array_in_several_sized_blocks_is_read() -> None:
    """
    As Java's blocking encoder writes them.
    """
    blocks = bytes([3, 4, 2, 4, 2, 6, 0])  # -2 items in 2 bytes: 1 2; 1 item: 3; the end.

    schema = array("int")

    assert [[1, 2, 3], []] == column(schema, schema, [blocks, b"\0"]).to_pylist()


def test_few_bytes_cannot_announce_billions_of_items() -> None:
    schema = array("null")
    at_once, in_blocks = b"\xfe\xff\xff\xff\x7f\0", b"\x80\x7d" * 10 + b"\0"

    for claimed in (at_once, in_blocks):
        with pytest.raises(MalformedValues, match="items without bytes"):
            column(schema, schema, [claimed])
