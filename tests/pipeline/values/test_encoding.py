"""
Encoded columns, against fastavro with named branches, and against a JSON Schema's validator.
"""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Final

import jsonschema
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.pipeline.values.encoding import encoder
from barnabas.pipeline.values.errors import MalformedValues
from barnabas.pipeline.values.registry import FetchedSchema
from tests.pipeline.values.avro_types import array, logical, record, values
from tests.pipeline.values.test_avro import column, written

ID: Final = b"\0\0\0\0\7"
MEMBERS: Final[dict[str, Any]] = {
    "boolean": "boolean",
    "long": "long",
    "double": "double",
    "string": "string",
    "bytes": "bytes",
    "E": {"type": "enum", "name": "E", "symbols": ["A", "B"]},
    "F": {"type": "fixed", "name": "F", "size": 2},
    "G": {"type": "fixed", "name": "G", "size": 2},
    "One": record("One", a="long", b=["null", "string"]),
    "Two": record("Two", a="long", b=["null", "string"]),
    "More": record("More", a="long", b=["null", "string"], c=("int", 3)),
    "map": {"type": "map", "values": "long"},
    "array": array("long"),
}
"""Branches whose values are alike, by the names that fastavro has for them."""


@st.composite
def unions(draw: st.DrawFn) -> tuple[Any, list[Any], list[Any]]:
    """
    A union, and values of it: as fastavro takes them with their branches, and as columns have them.
    """
    names = draw(st.lists(st.sampled_from([*MEMBERS]), min_size=2, max_size=5, unique=True))
    union = draw(st.permutations(["null", *(MEMBERS[name] for name in names)]))
    named, plain = [], []
    for _ in range(3):
        name = draw(st.sampled_from(names))
        value = draw(values(MEMBERS[name]))
        named.append((name, value))
        # Spark counts members without the null.
        order = [member for member in union if member != "null"]
        at = order.index(MEMBERS[name])
        pairs = [*value.items()] if name == "map" else value
        plain.append({f"member{n}": pairs if n == at else None for n in range(len(order))})
    return union, [*named, None], [*plain, None]


def encoded(kind: str, schema: Any, found: pa.Array) -> list[bytes | None]:
    front = encoder(FetchedSchema(kind, json.dumps(schema)), 7)(found).to_pylist()
    assert all(value is None or value.startswith(ID) for value in front)
    return [value and value[len(ID) :] for value in front]


@given(drawn=unions())
def test_branch_of_a_union_is_the_member_that_is_not_null(drawn: Any) -> None:
    union, named, plain = drawn
    schema = record("Outer", u=union, many=array(union), by={"type": "map", "values": union})
    # A record is defined once, and then used by its name.
    rest = [
        member["name"] if isinstance(member, dict) and "name" in member else member
        for member in union
    ]
    schema["fields"][1]["type"]["items"] = schema["fields"][2]["type"]["values"] = rest
    expected = [written(schema, {"u": u, "many": named, "by": {"k": u}}) for u in named]
    rows = [{"u": u, "many": plain, "by": [("k", u)]} for u in plain]
    kind = column(schema, schema, expected).type

    assert expected == encoded("AVRO", schema, pa.array(rows, kind))


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ("boolean", None),
        ("string", None),
        ("boolean", 1),
        ("int", 1 << 31),
        ("int", True),
        ("long", 1.5),
        ("double", "1"),
        ("string", b"bytes"),
        ("bytes", "text"),
        (array("long"), [1, None]),
        ({"type": "map", "values": "long"}, [("a", None)]),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "B"),
        ({"type": "fixed", "name": "F", "size": 2}, b"123"),
        (["string", "long"], {"member0": None, "member1": None}),
        (["string", "long"], {"member0": "a", "member1": 1}),
        (["null", "long"], "text"),
        (logical("date", "int"), datetime(2020, 1, 1)),
        (logical("timestamp-micros"), datetime(2020, 1, 1)),
        (logical("local-timestamp-micros"), datetime(2020, 1, 1, tzinfo=UTC)),
        (logical("decimal", "bytes", precision=4, scale=2), Decimal("1.234")),
    ],
)
def test_value_that_is_none_of_its_avro_type_is_refused(schema: Any, value: Any) -> None:
    with pytest.raises(MalformedValues, match="A row does not fit its schema: "):
        encoded("AVRO", record(f=schema), pa.array([{"f": value}]))


@pytest.mark.parametrize(
    ("schema", "default", "value"),
    [
        ("long", 5, 5),
        ("bytes", "\xff", b"\xff"),
        ([MEMBERS["One"], MEMBERS["Two"]], {"a": 1, "b": None}, ("One", {"a": 1, "b": None})),
        (["null", "string"], None, None),
        (logical("date", "int"), 3, date(1970, 1, 4)),
    ],
)
def test_missing_field_has_its_default(schema: Any, default: Any, value: Any) -> None:
    with_default = record(f=(schema, default), g="long")

    (found,) = encoded("AVRO", with_default, pa.array([{"g": 1}]))

    assert written(record(f=schema, g="long"), {"f": value, "g": 1}) == found


JSON: Final = {
    "type": "object",
    "required": ["must", "at", "counts"],
    "properties": {
        "must": {"type": ["string", "null"]},
        "may": {"type": "string"},
        "at": {"oneOf": [{"type": "null"}, {"$ref": "#/definitions/place"}]},
        "counts": {"type": "object", "additionalProperties": {"type": ["number", "null"]}},
        "more": {"type": "array", "items": {"$ref": "#/definitions/place"}},
    },
    "definitions": {
        "place": {
            "type": "object",
            "required": ["x", "labels"],
            "properties": {
                "x": {"type": ["number", "null"]},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            },
        }
    },
}
PLACE: Final = pa.struct([("x", pa.float64()), ("labels", pa.map_(pa.string(), pa.string()))])
JSON_ROWS: Final = pa.struct(
    [
        ("must", pa.string()),
        ("may", pa.string()),
        ("at", PLACE),
        ("counts", pa.map_(pa.string(), pa.float64())),
        ("more", pa.list_(PLACE)),
    ]
)
numbers = st.floats() | st.none()
places = st.fixed_dictionaries(
    {"x": numbers, "labels": st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=2)}
)


@given(
    row=st.fixed_dictionaries(
        {
            "must": st.text(max_size=3) | st.none(),
            "may": st.text(max_size=3) | st.none(),
            "at": places | st.none(),
            "counts": st.dictionaries(st.text(max_size=3), numbers, max_size=2),
            "more": st.lists(places, max_size=2) | st.none(),
        }
    )
)
def test_json_is_valid_and_keeps_all_that_its_schema_has(row: Any) -> None:
    found = [row["at"], *(row["more"] or [])]
    all_numbers = [*row["counts"].values(), *(place["x"] for place in found if place)]

    def pairs(place: Any) -> Any:
        return place and {**place, "labels": [*place["labels"].items()]}

    made = {
        **row,
        "at": pairs(row["at"]),
        "counts": [*row["counts"].items()],
        "more": row["more"] and [pairs(place) for place in row["more"]],
    }
    rows = pa.array([made], JSON_ROWS)
    if any(number is not None and number - number != 0 for number in all_numbers):
        with pytest.raises(MalformedValues, match="A row is no JSON of its schema"):
            encoded("JSON", JSON, rows)
        return

    (text,) = encoded("JSON", JSON, rows)

    assert text is not None
    read = json.loads(text)
    jsonschema.validate(read, JSON)
    optional = ("may", "more")
    assert {k: v for k, v in row.items() if v is not None or k not in optional} == read


@pytest.mark.parametrize("row", [{"a": None, "b": 1}, {"b": 1}])
def test_null_that_a_json_schema_requires_to_be_something_is_refused(row: Any) -> None:
    schema = {"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}}

    with pytest.raises(MalformedValues, match="a is required, and null"):
        encoded("JSON", schema, pa.array([row]))
