"""
Defaults of fields that were not written yet.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa

from barnabas.pipeline.values.avro.schema import NO_DEFAULT, AvroType
from barnabas.pipeline.values.errors import UnusableSchema

_US_PER_MS = 1000


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
    if value is None:
        return None
    match of.kind:
        case "union":
            return _of_union(of, value)
        case "record":
            return {
                field.name: _default(field.type, value.get(field.name, field.default))
                for field in of.fields
                if value.get(field.name, field.default) is not NO_DEFAULT
            }
        case "array":
            assert of.items is not None
            return [_default(of.items, item) for item in value]
        case "map":
            assert of.items is not None
            return [(name, _default(of.items, item)) for name, item in value.items()]
        case "bytes" | "fixed":
            return _of_bytes(of, value.encode("latin-1"))
    return value * _US_PER_MS if of.logical.endswith("-millis") else value


def _of_bytes(of: AvroType, value: bytes) -> bytes | Decimal:
    if of.logical == "decimal":
        return Decimal(int.from_bytes(value, "big", signed=True)).scaleb(-of.arrow.scale)
    return value


def _of_union(of: AvroType, value: Any) -> Any:
    # The default of a union is one of its first type.
    members = of.members
    if not of.is_struct_of_members:
        return _default(members[0], value)
    return {"member0": _default(members[0], value)}
