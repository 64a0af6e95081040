"""
Requests that are well-formed and absurd: one array has as many entries as there are asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

from barnabas.protocol.codec.schema import Array, Field, Fixed, Kind, Struct, Type, fields
from barnabas.protocol.structs import MISSING

Path = tuple[str, ...]


def array_paths(cls: type, version: int) -> Iterator[Path]:
    """
    The arrays that *version* of *cls* has, those within the entries of others too.
    """
    for field in fields(cls):
        if not field.is_in(version):
            continue
        kind: Type = field.type
        if isinstance(kind, Array):
            yield (field.name,)
            kind = kind.element
        if isinstance(kind, Struct):
            for path in array_paths(kind.cls, version):
                yield (field.name, *path)


def absurd_request(cls: type, version: int, path: Path, entries: int, **given: Any) -> Any:
    """
    A message of *cls* with *entries* entries in the array at *path* and one in every other.

    Args:
        given: values of fields, whichever struct they are in, in place of the made ones.
    """
    return _Maker(version, entries, given).struct(cls, path, 0)


class _Maker:
    """
    Makes the values of one message. Those of the entries of an array differ by their numbers.
    """

    def __init__(self, version: int, entries: int, given: dict[str, Any]) -> None:
        self._version = version
        self._entries = entries
        self._given = given

    def struct(self, cls: type, path: Path, number: int) -> Any:
        values = {}
        for field in fields(cls):
            if not field.is_in(self._version):
                continue
            rest = path[1:] if path[:1] == (field.name,) else ()
            if field.name in self._given and not isinstance(field.type, Array | Struct):
                values[field.name] = self._given[field.name]
            elif isinstance(field.type, Array):
                count = self._entries if path == (field.name,) else 1
                kind = field.type.element
                values[field.name] = [self._value(field, kind, rest, n) for n in range(count)]
            elif field.default is MISSING or rest or isinstance(field.type, Fixed | Kind):
                values[field.name] = self._value(field, field.type, rest, number)
        return cls(**values)

    def _value(self, field: Field, kind: Type, path: Path, number: int) -> Any:
        if isinstance(kind, Struct):
            return self.struct(kind.cls, path, number)
        if isinstance(kind, Fixed):
            if field.default is not MISSING and not isinstance(field.type, Array):
                return field.default
            return {"?": False, "d": 1.0, "b": 0, "h": number % 100}.get(kind.format, number)
        if kind is Kind.STRING:
            return f"{field.name}-{number}"
        return UUID(int=number + 1) if kind is Kind.UUID else b""
