"""
A message with one of everything in it.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from barnabas.protocol.codec.schema import Array, Fixed, Kind, Struct, Type, fields

_VALUES = {Kind.STRING: "x", Kind.BYTES: b"x", Kind.RECORDS: b"", Kind.UUID: UUID(int=7)}


def sample(cls: Any, **values: Any) -> Any:
    """
    A *cls* of which every array has one element and every text a letter, but for *values*.
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
