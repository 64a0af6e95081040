"""
Random messages of any kind.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from random import Random
from typing import Any, Final
from uuid import UUID

from barnabas.protocol.codec.schema import Array, Field, Fixed, Kind, Struct, Type, fields
from barnabas.protocol.structs import MISSING

_DOUBLES: Final = (0.0, -0.0, 1e7, 1e-4, 0.001, 1 / 3, -1e300, 5e-324, math.nan, math.inf)
_STRINGS: Final = ("", "a", "consumer", '\u20ac"\\\n\x01\U0001f600')

_FIXED: Final[Mapping[str, Callable[[Random], Any]]] = {
    "?": lambda random: random.random() < 0.5,
    "b": lambda random: random.choice((0, 1, 2, 3, -1)),
    "h": lambda random: random.choice((0, 1, -1, 300)),
    "H": lambda random: random.choice((0, 9092, 65535)),
    "i": lambda random: random.choice((0, 5, -1, 2**31 - 1)),
    "I": lambda random: random.choice((0, 2**32 - 1)),
    "q": lambda random: random.choice((0, 7, -1, 12345678901234)),
    "d": lambda random: random.choice((*_DOUBLES, random.random() * 10 ** random.randrange(12))),
}

_KINDS: Final[Mapping[Kind, Callable[[Random], Any]]] = {
    Kind.STRING: lambda random: random.choice(_STRINGS),
    Kind.BYTES: lambda random: random.randbytes(random.randrange(9)),
    Kind.RECORDS: lambda random: random.randbytes(random.choice((0, 9, 130))),
    Kind.UUID: lambda random: UUID(int=random.choice((0, random.getrandbits(128)))),
}


def random_message(cls: type, version: int, random: Random) -> Any:
    """
    A message of *cls* whose fields are those of *version*, some left at their defaults.
    """
    values = {}
    for field in fields(cls):
        has_default = field.default is not MISSING
        left_out = not field.is_in(version) or (field.tag is not None and random.random() < 0.4)
        if not (has_default and left_out):
            values[field.name] = _value(field, field.type, version, random)
    return cls(**values)


def _value(field: Field, kind: Type, version: int, random: Random) -> Any:
    if field.is_nullable_in(version) and random.random() < 0.3:
        return None
    if isinstance(kind, Fixed):
        return _FIXED[kind.format](random)
    if isinstance(kind, Array):
        element = field._replace(nullable=None)
        return [_value(element, kind.element, version, random) for _ in range(random.randrange(3))]
    if isinstance(kind, Struct):
        return random_message(kind.cls, version, random)
    return _KINDS[kind](random)
