from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import ClassVar
from uuid import UUID

import pytest

from barnabas.protocol.codec.schema import (
    ZERO_UUID,
    Api,
    Array,
    Field,
    Fixed,
    Kind,
    Message,
    Records,
    Struct,
    fields,
    float64,
    int16,
    int32,
    message,
    since,
)
from barnabas.protocol.structs import MISSING


@message
class Castle:
    name: str
    rooms: int32 = -1


@message(frozen=False)
class Village:
    api: ClassVar[Api] = Api(7, versions=range(1, 4), flexible=3)

    population: int32
    founded: int16 | None = since(0, until=2, default=None)
    castle: Castle | None = since(2, default=None, nullable=3)
    inns: list[str] = since(2, default=[])
    snow: float64 = since(3, default=0.5, tag=1)
    archive: Records | None = None
    seal: UUID = ZERO_UUID
    motto: str = since(0, default="", compact=False)


def facts(cls: type) -> dict[str, Field]:
    return {field.name: field for field in fields(cls)}


def test_constructor_fills_in_defaults() -> None:
    village = Village(population=12)

    assert 12 == village.population
    assert village.castle is None
    assert 0.5 == village.snow
    assert "" == village.motto
    assert ZERO_UUID == village.seal


@pytest.mark.parametrize("values", [{}, {"population": 1, "mayor": "x"}])
def test_constructor_refuses_missing_and_unknown_fields(values: dict[str, int]) -> None:
    @message
    class Hamlet:
        population: int32

    for _ in range(2):
        with pytest.raises(TypeError):
            Hamlet(**values)
    assert 1 == Hamlet(population=1).population


def test_frozen_message_is_immutable_and_hashable() -> None:
    castle = Castle(name="West-West")

    with pytest.raises(FrozenInstanceError, match="cannot assign to rooms of a Castle"):
        castle.rooms = 3  # type: ignore[misc]  # the checker knows it too
    with pytest.raises(FrozenInstanceError, match="cannot delete rooms of a Castle"):
        del castle.rooms
    assert hash(Castle(name="West-West")) == hash(castle)
    assert -1 == castle.rooms


def test_unfrozen_message_can_be_changed_but_has_no_hash_or_new_attributes() -> None:
    village = Village(population=12)

    village.population = 13

    assert 13 == village.population
    with pytest.raises(AttributeError):
        village.mayor = "x"  # type: ignore[attr-defined]  # the point
    with pytest.raises(TypeError, match="unhashable"):
        hash(village)


def test_repr_of_a_message_shows_its_fields() -> None:
    village = Village(population=1, castle=Castle(name="a"), archive=memoryview(b"123"))

    assert (
        "Village(population=1, founded=None, castle=Castle(name='a', rooms=-1), inns=[], snow=0.5, "
        f"archive=<3 bytes>, seal={ZERO_UUID!r}, motto='')" == repr(village)
    )


def test_message_may_define_its_own_repr() -> None:
    @message
    class Secret:
        word: str

        def __repr__(self) -> str:
            return "Secret"

    assert "Secret" == repr(Secret(word="open sesame"))


def test_fields_are_read_from_the_annotations_in_wire_order() -> None:
    found = facts(Village)

    assert list(Village.__slots__) == list(found)  # type: ignore[attr-defined]  # added by message
    assert Fixed("i") == found["population"].type
    assert Struct(Castle) == found["castle"].type
    assert Array(Kind.STRING) == found["inns"].type
    assert Kind.RECORDS is found["archive"].type
    assert Kind.UUID is found["seal"].type
    assert MISSING is found["population"].default
    assert not found["motto"].compact
    assert 1 == found["snow"].tag


@pytest.mark.parametrize(
    ("name", "present", "nullable"),
    [
        ("population", [0, 1, 2, 3], []),
        ("founded", [0, 1, 2], [0, 1, 2, 3]),
        ("castle", [2, 3], [3]),
        ("archive", [0, 1, 2, 3], [0, 1, 2, 3]),
    ],
)
def test_field_knows_its_versions_and_nullable_versions(
    name: str, present: list[int], nullable: list[int]
) -> None:
    field = facts(Village)[name]

    assert present == [version for version in range(4) if field.is_in(version)]
    assert nullable == [version for version in range(4) if field.is_nullable_in(version)]


def test_api_knows_its_flexible_versions() -> None:
    assert [False, False, True] == [Village.api.is_flexible(version) for version in (1, 2, 3)]
    assert not Api(47, versions=range(1)).is_flexible(0)


def test_api_can_advertise_more_versions_than_it_decodes() -> None:
    """
    Some clients detect a feature by an advertised version.
    """
    assert range(1, 4) == Village.api.advertised
    assert range(14) == Api(0, versions=range(3, 14), also_advertised=range(3)).advertised


@message
class Undecided:
    """
    Says two things at once.
    """

    what: int32 | str


@message
class Alien:
    """
    Has a type that the wire has not.
    """

    what: complex


@message
class Bare:
    """
    Does not say what an absent tagged field is.
    """

    what: int32 = since(0, tag=0)


@pytest.mark.parametrize(
    ("cls", "reason"),
    [
        (Undecided, "Undecided.what: .* is not a type of the wire"),
        (Alien, "Alien.what: .*complex.* is not a type of the wire"),
        (Bare, "Bare.what: a tagged field needs a default"),
        (int, "int is not a message"),
    ],
)
def test_invalid_declaration_is_refused_with_class_and_field(cls: type, reason: str) -> None:
    with pytest.raises(TypeError, match=reason):
        fields(cls)


def test_message_class_satisfies_the_message_protocol() -> None:
    """
    Checked by the type checker.
    """
    cls: type[Message] = Village

    assert 7 == cls.api.key
