"""
From JSON, or the query of a URL, to a dataclass.

The annotations of the dataclass say what its fields take: ``str``, ``int``, ``float``, ``bool``,
``None``, ``Literal``, lists, dictionaries, other dataclasses, and unions of these.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import lru_cache
from types import NoneType, UnionType
from typing import (
    Any,
    Final,
    Literal,
    NamedTuple,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from barnabas.storage.config.option_values import did_you_mean

T = TypeVar("T")

MOST_SHOWN: Final = 60
"""
The most characters of a value in a message.
"""


class BadFields(ValueError):
    """
    A field is unknown, missing, or of the wrong type.
    """


def from_json(shape: type[T], body: bytes) -> T:
    """
    Read an object; no bytes are an object without fields.

    Raises:
        BadFields: it is none, or does not have the fields of *shape*.
    """
    try:
        given = json.loads(body, parse_constant=_no_constant) if body else {}
    except (ValueError, RecursionError) as error:
        raise BadFields(f"the body is not JSON: {error}") from None
    if not isinstance(given, dict):
        raise BadFields(f"the body is an object, not {_shown(given)}")
    made: T = _object(shape, given, "")
    return made


def from_query(shape: type[T], given: Iterable[tuple[str, str]]) -> T:
    """
    Read a query; its texts become numbers and truth values where *shape* has these.

    Raises:
        BadFields: it does not have the fields of *shape*.
    """
    parts = _parts(shape)  # type: ignore[arg-type]  # a class has a hash
    read = {
        name: _from_text(parts[name].kind, text) if name in parts else text for name, text in given
    }
    made: T = _object(shape, read, "")
    return made


class _Part(NamedTuple):
    kind: Any
    is_required: bool


@lru_cache
def _parts(shape: Any) -> Mapping[str, _Part]:
    hints = get_type_hints(shape)
    assert is_dataclass(shape), shape
    return {
        field.name: _Part(
            hints[field.name], field.default is MISSING and field.default_factory is MISSING
        )
        for field in fields(shape)
    }


def _object(shape: Any, given: Mapping[str, object], place: str) -> Any:
    parts = _parts(shape)
    where = f"{place}: " if place else ""
    for name in given:
        if name not in parts:
            known = f" (there are: {', '.join(parts)})" if parts else " (there are none)"
            hint = did_you_mean(name, parts) or known
            raise BadFields(f"{where}there is no field {_cut(name)}{hint}")
    for name, part in parts.items():
        if part.is_required and name not in given:
            raise BadFields(f"{where}the field {name} is missing: {_name(part.kind)}")
    inside = f"{place}." if place else ""
    return shape(
        **{name: _value(parts[name].kind, value, inside + name) for name, value in given.items()}
    )


def _value(kind: Any, given: object, place: str) -> Any:
    """
    A value of the type *kind*.
    """
    origin = get_origin(kind)
    if origin in (Union, UnionType):
        return _one_of(kind, given, place)
    if is_dataclass(kind) and isinstance(given, dict):
        return _object(kind, given, place)
    if origin is list and isinstance(given, list):
        (item,) = get_args(kind)
        return [_value(item, each, f"{place}[{number}]") for number, each in enumerate(given)]
    if origin is dict and isinstance(given, dict):
        _, item = get_args(kind)
        return {name: _value(item, each, f"{place}.{name}") for name, each in given.items()}
    if not _is(kind, given):
        raise BadFields(f"{place} is {_name(kind)}, not {_shown(given)}")
    return given


def _one_of(kind: Any, given: object, place: str) -> Any:
    """
    A value of one of several types; the nearest refusal if it is of none.
    """
    for option in get_args(kind):
        nested = get_origin(option) in (list, dict) or is_dataclass(option)
        if _is(option, given) or (nested and isinstance(given, (list, dict))):
            return _value(option, given, place)
    raise BadFields(f"{place} is {_name(kind)}, not {_shown(given)}")


def _is(kind: Any, given: object) -> bool:
    if get_origin(kind) is Literal:
        return given in get_args(kind)
    if kind is float:
        return isinstance(given, (int, float)) and not isinstance(given, bool)
    if kind is int:
        return isinstance(given, int) and not isinstance(given, bool)
    return isinstance(kind, type) and isinstance(given, kind)


def _from_text(kind: Any, text: str) -> object:
    kinds = {kind, *get_args(kind)}
    if bool in kinds and text in ("true", "false"):
        return text == "true"
    if int in kinds and text.removeprefix("-").isdecimal() and len(text) < 20:
        return int(text)
    return text


_NAMES: Final[Mapping[Any, str]] = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    NoneType: "null",
    list: "a list",
    dict: "an object",
}


def _name(kind: Any) -> str:
    """
    What a type is called in a message.
    """
    origin = get_origin(kind)
    if origin in (Union, UnionType):
        return " or ".join(_name(option) for option in get_args(kind))
    if origin is Literal:
        return " or ".join(f'"{option}"' for option in get_args(kind))
    if is_dataclass(kind):
        return _NAMES[dict]
    return _NAMES[origin or kind]


def _shown(given: object) -> str:
    return _cut(json.dumps(given))


def _cut(text: str) -> str:
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}..."


def _no_constant(text: str) -> object:
    raise ValueError(f"{text} is not a number of JSON")
