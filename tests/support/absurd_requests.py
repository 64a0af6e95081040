"""
Well-formed requests with any number of entries in one array.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

from barnabas.protocol.codec.schema import Array, Field, Fixed, Kind, Struct, Type, fields
from barnabas.protocol.structs import MISSING

Path = tuple[str, ...]


def array_paths(cls: type, version: int) -> Iterator[Path]:
    """
    The arrays of *version* of *cls*, including those within entries.
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
    A message of *cls* with *entries* entries in the array at *path*, and one in every other array.

    Args:
        given: values of fields in any struct, instead of generated ones.
    """
    return _Maker(version, entries, given).struct(cls, path)(0)


class _Maker:
    """
    Generates the values of one message; the entries of an array differ by their numbers.
    """

    def __init__(self, version: int, entries: int, given: dict[str, Any]) -> None:
        self._version = version
        self._entries = entries
        self._given = given

    def struct(self, cls: type, path: Path) -> Callable[[int], Any]:
        """
        A function that makes the struct with a number; all structs share their arrays.
        """
        same: dict[str, Any] = {}
        numbered: dict[str, Callable[[int], Any]] = {}
        for field in fields(cls):
            if not field.is_in(self._version):
                continue
            rest = path[1:] if path[:1] == (field.name,) else ()
            if field.name in self._given and not isinstance(field.type, Array | Struct):
                same[field.name] = self._given[field.name]
            elif isinstance(field.type, Array):
                count = self._entries if path == (field.name,) else 1
                make = self._value(field, field.type.element, rest)
                same[field.name] = [make(number) for number in range(count)]
            elif field.default is MISSING or rest or isinstance(field.type, Fixed | Kind):
                numbered[field.name] = self._value(field, field.type, rest)
        return lambda number: cls(**same, **{name: make(number) for name, make in numbered.items()})

    def _value(self, field: Field, kind: Type, path: Path) -> Callable[[int], Any]:
        if isinstance(kind, Struct):
            return self.struct(kind.cls, path)
        if isinstance(kind, Fixed):
            if field.default is not MISSING and not isinstance(field.type, Array):
                return lambda _: field.default
            makers = {
                "?": lambda _: False,
                "d": lambda _: 1.0,
                "b": lambda _: 0,
                "h": lambda n: n % 100,
            }
            return makers.get(kind.format, int)
        if kind is Kind.STRING:
            return lambda number: f"{field.name}-{number}"
        return lambda number: UUID(int=number + 1) if kind is Kind.UUID else b""
