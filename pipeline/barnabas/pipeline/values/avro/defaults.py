"""
Defaults of fields that were not written yet.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from barnabas.pipeline.values.avro.schema import NO_DEFAULT, AvroType
from barnabas.pipeline.values.errors import UnusableSchema

_US_PER_MS: Final = 1000


def default_column(of: AvroType, value: Any) -> pa.Array:
    """
    A column with one row, which has the default *value* of a schema.

    Raises:
        UnusableSchema: it is none of its type.
    """
    try:
        return pa.array([_default(of, value)], of.arrow)
    except (pa.ArrowException, TypeError, ValueError, AttributeError) as error:
        raise UnusableSchema(f"The default {value!r} is no {of.kind}.") from error


def _default(of: AvroType, value: Any) -> Any:
    if value is None or of.kind not in _MADE:
        return value
    return _MADE[of.kind](of, value)


def _record(of: AvroType, value: Any) -> dict[str, Any]:
    given = {field.name: value.get(field.name, field.default) for field in of.fields}
    if NO_DEFAULT in given.values():
        raise ValueError("a field is missing")
    return {field.name: _default(field.type, given[field.name]) for field in of.fields}


def _long(of: AvroType, value: int) -> int:
    return value * _US_PER_MS if of.logical.endswith("-millis") else value


def _items(of: AvroType, value: Any) -> list[Any]:
    assert of.items is not None
    if of.kind == "map":
        return [(name, _default(of.items, item)) for name, item in value.items()]
    return [_default(of.items, item) for item in value]


def _of_bytes(of: AvroType, text: str) -> bytes | Decimal:
    value = text.encode("latin-1")
    if of.logical == "decimal":
        return Decimal(int.from_bytes(value, "big", signed=True)).scaleb(-of.arrow.scale)
    return value


def _of_union(of: AvroType, value: Any) -> Any:
    # The default of a union is one of its first type.
    members = of.members
    if not of.is_struct_of_members:
        return _default(members[0], value)
    return {"member0": _default(members[0], value)}


_MADE: Final[dict[str, Callable[[AvroType, Any], Any]]] = {
    "array": _items,
    "bytes": _of_bytes,
    "fixed": _of_bytes,
    "long": _long,
    "map": _items,
    "record": _record,
    "union": _of_union,
}
"""Where the value of a column is not what stands in the schema."""
