"""
Rows as fastavro takes them, each of just the type that its schema says.

fastavro writes the first branch of a union that a value could be of, false for a null boolean, and
integers of any size as an ``int``. So every value is checked here, and the branch is named.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final

from barnabas.pipeline.values.avro.defaults import default_column
from barnabas.pipeline.values.avro.schema import NO_DEFAULT, AvroField, AvroType

Convert = Callable[[Any], Any]

_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "null": (),
    "boolean": (bool,),
    "int": (int,),
    "long": (int,),
    "float": (float, int),
    "double": (float, int),
    "bytes": (bytes,),
    "fixed": (bytes,),
    "string": (str,),
    "enum": (str,),
    "decimal": (Decimal,),
    "date": (date,),
}
_BITS: Final = {"int": 31, "long": 63}


def for_fastavro(of: AvroType) -> Convert:
    """
    Return a function that makes of a value of a column what fastavro writes as *of*. It raises
    ``TypeError`` or ``ValueError`` for a value of another type.
    """
    match of.kind:
        case "union":
            return _union(of)
        case "record":
            return _record(of)
        case "array" | "map":
            assert of.items is not None
            return _items(of.kind, for_fastavro(of.items))
    return _leaf(of)


def _record(of: AvroType) -> Convert:
    fields = [_field(field) for field in of.fields]

    def convert(value: Any) -> Any:
        if not isinstance(value, dict):
            raise _is_no(of.name, value)
        return {name: convert_field(value) for name, convert_field in fields}

    return convert


def _field(field: AvroField) -> tuple[str, Convert]:
    """
    The name of a field, and a function that takes its value out of a row.
    """
    name, convert = field.name, for_fastavro(field.type)
    # Without a default, a field that a row lacks is null, if it may be.
    default = None
    if field.default is not NO_DEFAULT:
        default = default_column(field.type, field.default)[0].as_py()

    def convert_field(row: dict[str, Any]) -> Any:
        try:
            return convert(row.get(name, default))
        except (TypeError, ValueError) as error:
            raise type(error)(f"{error} in field {name}") from None

    return name, convert_field


def _items(kind: str, convert: Convert) -> Convert:
    def convert_items(value: Any) -> Any:
        if not isinstance(value, list):
            raise _is_no(kind, value)
        if kind == "map":
            return {name: convert(item) for name, item in value}
        return [convert(item) for item in value]

    return convert_items


def _union(of: AvroType) -> Convert:
    members = [(member.name or member.kind, for_fastavro(member)) for member in of.members]
    may_be_null = len(members) < len(of.branches)

    def convert(value: Any) -> Any:
        if value is None and may_be_null:
            return None
        if not of.is_struct_of_members:
            # Of int and long, or float and double, the column has the wider one.
            name, convert_member = max(members, key=lambda member: member[0] in ("long", "double"))
            return name, convert_member(value)
        given = [
            n for n in range(len(members)) if value is not None and value[f"member{n}"] is not None
        ]
        if not given and may_be_null:
            return None
        if len(given) != 1:
            raise ValueError(f"{len(given)} members of a union are not null")
        name, convert_member = members[given[0]]
        return name, convert_member(value[f"member{given[0]}"])

    return convert


def _leaf(of: AvroType) -> Convert:
    if of.logical.endswith(("-millis", "-micros")):
        return _time(of)
    types, bits = _TYPES[of.logical or of.kind], _BITS.get(of.kind)
    most = None if bits is None or of.logical else 1 << bits

    def is_one(value: Any) -> bool:
        # True is an int, and a datetime is a date.
        exact = type(value) not in (bool, datetime) or type(value) in types
        return exact and isinstance(value, types)

    def convert(value: Any) -> Any:
        if value is None and of.kind == "null":
            return None
        if not is_one(value):
            raise _is_no(of.logical or of.kind, value)
        if most is not None and not -most <= value < most:
            raise ValueError(f"{value} is too large for {of.kind}")
        if of.kind == "enum" and value not in of.symbols:
            raise ValueError(f"{value!r} is no symbol of {of.name}")
        return value

    return convert


def _time(of: AvroType) -> Convert:
    is_local = of.logical.startswith("local-")

    def convert(value: Any) -> Any:
        if not isinstance(value, datetime) or (value.tzinfo is None) != is_local:
            raise _is_no(of.logical, value)
        return value

    return convert


def _is_no(kind: str, value: Any) -> TypeError:
    return TypeError(f"{value!r} is no {kind}")
