"""
From JSON, or the query of a URL, to a dataclass.

The annotations of the dataclass say what its fields take: ``str``, ``int``, ``float``, ``bool``,
``None``, ``Literal``, lists, dictionaries, other dataclasses, and unions of these. ``Annotated``
adds a ``Range`` to a number, and a text that describes the field.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import lru_cache
from types import NoneType, UnionType
from typing import (
    Annotated,
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


class Range(NamedTuple):
    """
    The least and the most that a number may be.
    """

    least: int
    most: int | None = None


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
    Read a query; its texts become numbers and truth values where *shape* has these, and a name
    that is repeated becomes a list.

    Raises:
        BadFields: it does not have the fields of *shape*.
    """
    parts = parts_of(shape)  # type: ignore[arg-type]  # a class has a hash
    read: dict[str, Any] = {}
    for name, text in given:
        kind = parts[name].kind if name in parts else str
        if get_origin(kind) is list:
            read.setdefault(name, []).append(_from_text(get_args(kind)[0], text))
        elif name in read:
            raise BadFields(f"the field {_cut(name)} is there twice")
        else:
            read[name] = _from_text(kind, text)
    made: T = _object(shape, read, "")
    return made


class ObjectField(NamedTuple):
    """
    A field of a dataclass.
    """

    kind: Any
    is_required: bool
    default: Any = None
    range: Range | None = None
    says: str = ""


@lru_cache
def parts_of(shape: Any) -> Mapping[str, ObjectField]:
    """
    The fields of a dataclass by name.
    """
    hints = get_type_hints(shape, include_extras=True)
    assert is_dataclass(shape), shape
    found = {}
    for field in fields(shape):
        kind, *more = _unwrapped(hints[field.name])
        found[field.name] = ObjectField(
            kind,
            field.default is MISSING and field.default_factory is MISSING,
            None if field.default is MISSING else field.default,
            next((each for each in more if isinstance(each, Range)), None),
            next((each for each in more if isinstance(each, str)), ""),
        )
    return found


def _unwrapped(hint: Any) -> tuple[Any, ...]:
    """
    A type, and what ``Annotated`` adds to it.
    """
    return (*get_args(hint),) if get_origin(hint) is Annotated else (hint,)


def _object(shape: Any, given: Mapping[str, object], place: str) -> Any:
    parts = parts_of(shape)
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
    read = {name: _value(parts[name].kind, value, inside + name) for name, value in given.items()}
    for name, value in read.items():
        _check_range(inside + name, value, parts[name].range)
    return shape(**read)


def _check_range(place: str, value: Any, allowed: Range | None) -> None:
    if allowed is None or value is None:
        return
    if allowed.most is not None and not allowed.least <= value <= allowed.most:
        raise BadFields(f"{place} is from {allowed.least} to {allowed.most}, not {value}")
    if value < allowed.least:
        raise BadFields(f"{place} is at least {allowed.least}, not {value}")


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
