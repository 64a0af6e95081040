from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Annotated, Literal

import pytest

from barnabas.server.http.fields import BadFields, Range, from_json, from_query, parts_of


@dataclass(frozen=True, slots=True)
class Inner:
    name: str
    size: int = 0


@dataclass(frozen=True, slots=True)
class Outer:
    ratio: float
    kind: Literal["one", "two"] | int = "one"
    inner: Inner | None = None
    many: list[Inner] = field(default_factory=list)
    by_name: dict[str, bool] = field(default_factory=dict)


def test_every_field_type_is_parsed() -> None:
    given = {
        "ratio": 1,
        "kind": 7,
        "inner": {"name": "a"},
        "many": [{"name": "b", "size": 2}],
        "by_name": {"x": True},
    }

    assert Outer(1, 7, Inner("a"), [Inner("b", 2)], {"x": True}) == from_json(
        Outer, json.dumps(given).encode()
    )


def test_missing_fields_get_defaults() -> None:
    assert Outer(0.5) == from_json(Outer, b'{"ratio": 0.5}')


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({}, "the field ratio is missing: a number"),
        ({"ratio": True}, "ratio is a number, not true"),
        (
            {"ratio": 1, "kind": "three"},
            'kind is "one" or "two" or a whole number, not "three"',
        ),
        ({"ratio": 1, "kind": True}, 'kind is "one" or "two" or a whole number, not true'),
        ({"ratio": 1, "inner": 1}, "inner is an object or null, not 1"),
        ({"ratio": 1, "inner": {}}, "inner: the field name is missing: a text"),
        ({"ratio": 1, "inner": {"nam": 1}}, "inner: there is no field nam; did you mean name?"),
        ({"ratio": 1, "many": [{"name": "a"}, {"name": 1}]}, "many[1].name is a text, not 1"),
        ({"ratio": 1, "many": {}}, "many is a list, not {}"),
        ({"ratio": 1, "by_name": {"x": 0}}, "by_name.x is true or false, not 0"),
        ({"ratio": "x" * 100}, f'ratio is a number, not "{"x" * 59}...'),
    ],
)
def test_error_names_the_field_and_its_position(given: object, sentence: str) -> None:
    with pytest.raises(BadFields) as caught:
        from_json(Outer, json.dumps(given).encode())

    assert sentence == str(caught.value)


@dataclass(frozen=True, slots=True)
class Query:
    text: str = ""
    number: int | None = None
    flag: bool = False


def test_query_numbers_and_booleans_are_parsed() -> None:
    given = [("text", "7"), ("number", "-7"), ("flag", "true")]

    assert Query("7", -7, True) == from_query(Query, given)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (("number", "1.5"), 'number is a whole number or null, not "1.5"'),
        (("number", "9" * 30), f'number is a whole number or null, not "{"9" * 30}"'),
        (("flag", "1"), 'flag is true or false, not "1"'),
        (("fla", "true"), "there is no field fla; did you mean flag?"),
    ],
)
def test_query_error_names_the_parameter(given: tuple[str, str], sentence: str) -> None:
    with pytest.raises(BadFields) as caught:
        from_query(Query, [given])

    assert sentence == str(caught.value)


@dataclass(frozen=True, slots=True)
class Bounded:
    names: list[str] = field(default_factory=list)
    number: Annotated[int | None, Range(1, 5), "a number"] = None
    at_least: Annotated[int, Range(2)] = 2


def test_repeated_query_parameter_is_a_list() -> None:
    given = [("names", "a"), ("names", "true"), ("number", "5")]

    assert Bounded(["a", "true"], 5) == from_query(Bounded, given)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ([("number", "6")], "number is from 1 to 5, not 6"),
        ([("at_least", "-3")], "at_least is at least 2, not -3"),
        ([("number", "1"), ("number", "2")], "the field number is there twice"),
        ([("number", "x")], 'number is a whole number or null, not "x"'),
    ],
)
def test_numbers_have_a_range(given: list[tuple[str, str]], sentence: str) -> None:
    with pytest.raises(BadFields) as caught:
        from_query(Bounded, given)

    assert sentence == str(caught.value)


def test_field_describes_itself() -> None:
    part = parts_of(Bounded)["number"]

    assert ("a number", Range(1, 5), False) == (part.says, part.range, part.is_required)
