"""
Messages with one value in every field.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from barnabas.protocol.codec.schema import Array, Fixed, Kind, Struct, Type, fields

_VALUES = {Kind.STRING: "x", Kind.BYTES: b"x", Kind.RECORDS: b"", Kind.UUID: UUID(int=7)}


def sample(cls: Any, **values: Any) -> Any:
    """
    A *cls* with one element in every array and a letter in every text, except for *values*.
    """
    return cls(**{field.name: _value(field.type) for field in fields(cls)} | values)


def _value(kind: Type) -> Any:
    match kind:
        case Array():
            return [_value(kind.element)]
        case Struct():
            return sample(kind.cls)
        case Fixed():
            return False if kind.format == "?" else 1
        case _:
            return _VALUES[kind]
