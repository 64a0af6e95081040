"""
Any message of any version, for property tests.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any, TypeVar
from uuid import UUID

from hypothesis import strategies as st

from barnabas.protocol.codec.schema import Array, Field, Fixed, Kind, Struct, Type, fields
from barnabas.protocol.messages import REQUESTS, RESPONSES

T = TypeVar("T")

_FIXED: Mapping[str, st.SearchStrategy[Any]] = {
    "b": st.integers(-(2**7), 2**7 - 1),
    "h": st.integers(-(2**15), 2**15 - 1),
    "H": st.integers(0, 2**16 - 1),
    "i": st.integers(-(2**31), 2**31 - 1),
    "I": st.integers(0, 2**32 - 1),
    "q": st.integers(-(2**63), 2**63 - 1),
    "d": st.floats(allow_nan=False, allow_infinity=False),
    "?": st.booleans(),
}

# Lengths of 127 bytes and more take a second byte in the compact form.
_LONG = st.sampled_from([126, 127, 128, 300])
_TEXTS = st.text(max_size=8) | _LONG.map("k".__mul__)
_BYTES = st.binary(max_size=8) | _LONG.map(b"x".__mul__)
_SIZED = {Kind.STRING: _TEXTS, Kind.BYTES: _BYTES, Kind.RECORDS: _BYTES, Kind.UUID: st.uuids()}
_ANY: Mapping[str, st.SearchStrategy[int]] = {}


VERSIONS = [
    (cls, version)
    for messages_by_key in (REQUESTS, RESPONSES)
    for cls in messages_by_key.values()
    for version in cls.api.versions
]
"""
Each request and each response in each of its versions.
"""


def name_of(value: object) -> str:
    """
    The id of a test parameter.
    """
    return value.__name__ if isinstance(value, type) else f"v{value}"


def present_fields(cls: type, version: int) -> list[Field]:
    """
    The fields that *version* of *cls* has.
    """
    return [field for field in fields(cls) if field.is_in(version)]


Numbers = Mapping[str, st.SearchStrategy[int]]
"""
What integers there may be, by the ends of the names of fields.
"""


def messages(cls: type, version: int, numbers: Numbers = _ANY) -> st.SearchStrategy[Any]:
    """
    Any *cls*, with defaults where *version* has no field.
    """
    return st.builds(
        cls,
        **{
            field.name: field_values(field, version, numbers)
            for field in present_fields(cls, version)
        },
    )


def field_values(field: Field, version: int, numbers: Numbers = _ANY) -> st.SearchStrategy[Any]:
    chosen = [strategy for end, strategy in numbers.items() if field.name.endswith(end)]
    strategy = chosen[0] if chosen else _values(field.type, version, numbers)
    if field.tag is not None and field.default != []:
        strategy = st.just(field.default) | strategy
    return st.none() | strategy if field.is_nullable_in(version) else strategy


def _values(kind: Type, version: int, numbers: Numbers) -> st.SearchStrategy[Any]:
    if isinstance(kind, Struct):
        return messages(kind.cls, version, numbers)
    if isinstance(kind, Array):
        element = _values(kind.element, version, numbers)
        few = st.lists(element, max_size=2)
        if not isinstance(kind.element, Fixed):
            return few
        return few | st.tuples(_LONG, element).map(lambda many: [many[1]] * many[0])
    if isinstance(kind, Kind):
        return _SIZED[kind]
    return _FIXED[kind.format]


class Samples:
    """
    Messages with generated values that are the same in each run and differ between fields.

    Args:
        full: fill lists and nullable fields.
    """

    def __init__(self, *, full: bool) -> None:
        self._full = full
        self._count = 0

    def message(self, cls: type, version: int) -> Any:
        return cls(
            **{
                field.name: self._field(field, version)
                for field in present_fields(cls, version)
                if self._full or field.tag is None
            }
        )

    def _field(self, field: Field, version: int) -> Any:
        if field.is_nullable_in(version) and not self._full:
            return None
        return self._value(field.type, version)

    def _value(self, kind: Type, version: int) -> Any:
        if isinstance(kind, Array):
            return [self._value(kind.element, version) for _ in range(2 * self._full)]
        if isinstance(kind, Struct):
            return self.message(kind.cls, version)
        self._count += 1
        if isinstance(kind, Kind):
            return {
                Kind.STRING: f"s{self._count}",
                Kind.BYTES: bytes([self._count % 256]),
                Kind.RECORDS: bytes([self._count % 256] * 3),
                Kind.UUID: UUID(int=self._count << 64 | 1),
            }[kind]
        if kind.format in "?d":
            return self._count % 2 == 0 if kind.format == "?" else self._count / 4
        return self._count % 100 * (-1 if kind.format in "bhiq" and self._count % 3 == 0 else 1)


def ended(steps: Generator[None, None, T]) -> T:
    """
    Take all *steps*, and return their result.
    """
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result
