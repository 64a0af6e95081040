from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.pipeline.values.decoding import ValueDecoder
from barnabas.pipeline.values.errors import UnusableSchema
from barnabas.pipeline.values.frames import VALUE_HEADER, schema_headers
from barnabas.pipeline.values.registry import (
    FetchedSchema,
    Registry,
    RegistryAddress,
    RegistryError,
    UnknownSchema,
)
from tests.pipeline.values.avro_types import record
from tests.support.schema_registry import SchemaRegistry, guid_of


@pytest.fixture(scope="module")
def opened(registry: SchemaRegistry) -> Iterator[Registry]:
    """
    A registry of three schemas: 1 is an int, 2 a long, 3 is JSON.
    """
    with RegistryAddress.of(registry.url).open() as opened:
        for kind, text in (("AVRO", '"int"'), ("AVRO", '"long"'), ("JSON", "{}")):
            opened.register("s", kind, text)
        yield opened


@pytest.fixture
def decoder(opened: Registry) -> ValueDecoder:
    return ValueDecoder(opened, opened.schema(2))


def with_id(schema_id: int, payload: bytes) -> bytes:
    return b"\0" + schema_id.to_bytes(4, "big") + payload


def with_guid(schema_id: int, payload: bytes) -> bytes:
    return b"\1" + UUID(guid_of(schema_id)).bytes + payload


def test_rows_keep_their_order(decoder: ValueDecoder) -> None:
    values = [with_id(1 + n % 2, bytes([n])) for n in range(6)]
    values.insert(3, with_guid(1, b"\0"))
    column = pa.array([b"not read", None, *values])[1:]

    found = decoder.decode(column)

    assert pa.int64() == found.column.type
    assert [None, 0, -1, 1, 0, -2, 2, -3] == found.column.to_pylist()
    assert {} == found.errors


def test_column_may_have_large_offsets(decoder: ValueDecoder) -> None:
    """
    Spark sends them with ``spark.sql.execution.arrow.useLargeVarTypes``.
    """
    column = pa.array([with_id(1, b"\2"), None, with_id(2, b"\4")], pa.large_binary())

    assert [1, None, 2] == decoder.decode(column).column.to_pylist()


def test_schema_id_in_a_header_takes_precedence(decoder: ValueDecoder) -> None:
    headers: list[bytes | None] = [
        with_guid(1, b""),
        with_id(2, b""),
        None,
        b"\1too short",
        with_guid(9, b""),
    ]

    found = decoder.decode(pa.array([b"\2", b"\4", with_id(1, b"\6"), b"\2", b"\2"]), headers)

    assert [1, 2, 3, None, None] == found.column.to_pylist()
    assert "Its header names no schema." == found.errors[3]
    assert found.errors[4].endswith(f"has no schema {guid_of(9)}.")


def test_first_header_of_the_name_counts() -> None:
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    rows = [
        None,
        [("x", b"1"), (VALUE_HEADER, b"2"), (VALUE_HEADER, b"3")],
        [(VALUE_HEADER, None)],
        [("x", None)],
    ]
    headers = pa.array(
        [row and [{"key": key, "value": value} for key, value in row] for row in rows], kind
    )

    assert [None, b"2", b"", None] == schema_headers(headers, VALUE_HEADER)
    assert [None] * 3 == schema_headers(headers[1:], "y")


@given(bad=st.sets(st.integers(0, 49)))
def test_each_malformed_row_is_reported(opened: Registry, bad: set[int]) -> None:
    decoder = ValueDecoder(opened, opened.schema(2))
    values = [with_id(2, b"\xff" if n in bad else b"\2") for n in range(50)]

    found = decoder.decode(pa.array(values))

    assert [None if n in bad else 1 for n in range(50)] == found.column.to_pylist()
    assert dict.fromkeys(bad, "Schema 2: It ends in the middle of a field.") == found.errors


def test_incompatible_schemas_are_errors_of_their_rows(decoder: ValueDecoder) -> None:
    found = decoder.decode(pa.array([with_id(3, b"1"), with_id(99, b"1"), with_id(2, b"\2")]))

    assert [None, None, 1] == found.column.to_pylist()
    assert "Schema 3: It is of type JSON, and AVRO is read." == found.errors[0]
    assert found.errors[1].endswith("has no schema 99.")


def test_schema_is_requested_once(
    registry: SchemaRegistry, opened: Registry, decoder: ValueDecoder
) -> None:
    values = pa.array([with_id(1, b"\2"), with_id(77, b"\2")] * 3)

    for start in range(6):
        decoder.decode(values[start:])

    assert 1 >= registry.asked["/schemas/ids/1"]
    assert opened.schema(1) is opened.schema(1)
    assert 1 == registry.asked["/schemas/ids/77"]


def test_latest_schema_is_the_current_one(registry: SchemaRegistry) -> None:
    address = RegistryAddress.of(registry.url)
    for text in ('"int"', '"string"'):
        with address.open() as opened:
            opened.register("grows", "AVRO", text)
            assert text == opened.version("grows").text
    with address.open() as opened:
        assert '"int"' == opened.version("grows", 1).text
        with pytest.raises(UnknownSchema, match="has no schema grows 3"):
            opened.version("grows", 3)


def test_registry_client_is_shared_within_a_process() -> None:
    settings = {"url": "http://127.0.0.1:1", "timeout": 1}

    assert RegistryAddress.of(settings).kept() is RegistryAddress.of(dict(settings)).kept()


def test_nested_schema_references_are_fetched(registry: SchemaRegistry) -> None:
    def register(name: str, *types: str) -> None:
        schema = record(name, **{f"f{n}": of for n, of in enumerate(types)})
        refs = [{"name": of, "subject": of, "version": 1} for of in types if of != "int"]
        registry.schemas.register(name, {"schema": json.dumps(schema), "references": refs})

    register("A", "int")
    register("B", "A")
    register("C", "B", "A")
    with RegistryAddress.of(registry.url).open() as opened:
        fetched = opened.version("C")
        decoder = ValueDecoder(opened, fetched)

        found = decoder.decode(pa.array([with_id(opened.latest_id("C"), b"\2\4")]))

    assert ["A", "B"] == [name for name, _ in fetched.references]
    assert [{"f0": {"f0": {"f0": 1}}, "f1": {"f0": 2}}] == found.column.to_pylist()


def test_unreachable_registry_is_not_an_error_of_a_row(opened: Registry) -> None:
    with SchemaRegistry() as down:
        url = down.url
    address = RegistryAddress.of({"url": url, "max.retries": 1, "retries.wait.ms": 1})

    with address.open() as closed, pytest.raises(RegistryError, match=f"{url} does not answer: "):
        ValueDecoder(closed, opened.schema(2)).decode(pa.array([with_id(1, b"\2")]))


def test_password_appears_in_no_error(opened: Registry) -> None:
    with SchemaRegistry() as down:
        url = down.url.replace("//", "//user:secret@")
    address = RegistryAddress.of({"url": url, "max.retries": 0})

    with address.open() as closed, pytest.raises(RegistryError) as caught:
        closed.version("s")

    assert str(caught.value).startswith(f"{down.url} does not answer: ")
    assert "secret" not in str(caught.value)


def test_unsupported_schema_types_are_refused(opened: Registry) -> None:
    with pytest.raises(UnusableSchema, match="no decoder for schemas of type THRIFT"):
        ValueDecoder(opened, FetchedSchema("THRIFT", ""))


@pytest.mark.parametrize("rows", [0, 3])
def test_columns_without_values_are_null(decoder: ValueDecoder, rows: int) -> None:
    column: Any = pa.nulls(rows, pa.binary())

    assert [None] * rows == decoder.decode(column).column.to_pylist()
