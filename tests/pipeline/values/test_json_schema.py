from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from barnabas.pipeline.values.errors import MalformedValues, UnusableSchema
from barnabas.pipeline.values.json_schema import JsonType
from barnabas.pipeline.values.registry import FetchedSchema

TEXT = pa.string()


def json_type(schema: Any, **references: Any) -> JsonType:
    others = tuple((name, json.dumps(other)) for name, other in references.items())
    return JsonType(FetchedSchema("JSON", json.dumps(schema), others))


def column(schema: Any, payloads: Sequence[bytes], **references: Any) -> list[Any]:
    read = json_type(schema, **references).reader()
    ends = np.cumsum([len(payload) for payload in payloads])
    starts = ends - [len(payload) for payload in payloads]
    found: list[Any] = read(np.frombuffer(b"".join(payloads), np.uint8), starts, ends).to_pylist()
    return found


def object_of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        ({"type": "string", "format": "date-time"}, TEXT),
        ({"type": "integer"}, pa.int64()),
        ({"type": ["null", "number"]}, pa.float64()),
        ({"oneOf": [{"type": "null"}, {"type": "boolean"}]}, pa.bool_()),
        ({"type": ["string", "integer"]}, TEXT),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, TEXT),
        ({"enum": ["a", "b"], "type": "string"}, TEXT),
        ({"type": "array", "items": {"type": "integer"}}, pa.list_(pa.int64())),
        ({"type": "array"}, pa.list_(TEXT)),
        ({"type": "object"}, TEXT),
        (
            {"type": "object", "additionalProperties": {"type": "integer"}},
            pa.map_(TEXT, pa.int64()),
        ),
        ({"properties": {"a": {}}}, pa.struct([("a", TEXT)])),
        (True, TEXT),
    ],
)
def test_json_schema_types_become_columns(schema: Any, kind: pa.DataType) -> None:
    assert kind == json_type(schema).arrow


def test_json_values_have_the_types_of_their_columns() -> None:
    schema = object_of(
        whole={"type": "integer"},
        number={"type": "number"},
        any={},
        many={"type": "array", "items": object_of(any={})},
        by_name={"type": "object", "additionalProperties": {}},
    )
    payloads = [
        b'{"whole": 5.0, "number": 5, "any": {"x": [1]},'
        b' "many": [{"any": "y"}], "by_name": {"z": 1}}',
        b'{"more": 1}',
    ]

    full, empty = column(schema, payloads)

    assert {
        "whole": 5,
        "number": 5.0,
        "any": '{"x": [1]}',
        "many": [{"any": '"y"'}],
        "by_name": [("z", "1")],
    } == full
    assert dict.fromkeys(full) == empty


@pytest.mark.parametrize(
    ("schema", "payload"),
    [
        ({"type": "integer"}, b"1.5"),
        ({"type": "integer"}, b'"1"'),
        ({"type": "integer"}, b"9223372036854775808"),
        ({"type": "number"}, b"true"),
        ({"type": "string"}, b"1"),
        ({"type": "boolean"}, b"1"),
        (object_of(a={"type": "integer"}), b"[]"),
        (object_of(a={"type": "integer"}), b'{"a": {}}'),
        ({"type": "array", "items": {}}, b"{}"),
        ({"type": "object", "additionalProperties": {"type": "string"}}, b"5"),
        ({"type": "integer"}, b"{"),
        ({"type": "integer"}, b"\xff"),
        ({"type": "integer"}, b"[" * 100_000),
    ],
)
def test_json_value_of_another_type_is_malformed(schema: Any, payload: bytes) -> None:
    with pytest.raises(MalformedValues):
        column(schema, [payload])


def test_json_schema_references_are_followed() -> None:
    schema = {
        **object_of(
            a={"$ref": "#/$defs/a~1b"}, c={"$ref": "other#/properties/c"}, d={"$ref": "other"}
        ),
        "$defs": {"a/b": {"type": "integer"}},
    }
    other = object_of(c={"$ref": "#/definitions/c"}) | {"definitions": {"c": {"type": "number"}}}

    assert [{"a": 1, "c": 2.0, "d": {"c": 3.0}}] == column(
        schema, [b'{"a": 1, "c": 2, "d": {"c": 3}}'], other=other
    )


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (object_of(a={"$ref": "#"}), "# contains itself"),
        (object_of(a={"$ref": "#/nothing"}), "#/nothing, which is not there"),
        (object_of(a={"$ref": "other"}), "other, which the registry did not give"),
    ],
)
def test_schemas_without_columns_are_refused(schema: Any, reason: str) -> None:
    with pytest.raises(UnusableSchema, match=reason):
        json_type(schema)
