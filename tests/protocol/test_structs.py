from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError
from enum import IntEnum
from typing import ClassVar, Generic, TypeVar

import pytest

from barnabas.protocol.structs import fresh, is_struct, items, replace, struct

S = TypeVar("S")


class Season(IntEnum):
    SUMMER = 1
    WINTER = 2


@struct
class Road(Generic[S]):
    longest: ClassVar[int] = 9

    length: int
    end: S
    season: Season = Season.WINTER
    inns: list[str] = fresh(factory=list)


@struct(frozen=False, kw_only=True)
class Walk:
    steps: int = 0


class ShortWalk(Walk):
    __slots__ = ()


def test_struct_takes_values_in_order_or_by_name() -> None:
    assert Road(3, end="castle") == Road(length=3, end="castle", season=Season.WINTER, inns=[])
    assert Road(3, "castle") != Road(3, "inn")
    assert 9 == Road.longest


def test_struct_default_factories_are_called_for_each_object() -> None:
    Road(1, "a").inns.append("Bridge Inn")

    assert [] == Road(1, "a").inns


def test_second_object_of_a_struct_is_created_like_the_first() -> None:
    @struct
    class Bridge:
        length: int
        lanes: int = 2
        tolls: list[int] = []  # noqa: RUF012  # A list for each, as for the fields of messages.
        inns: list[str] = fresh(factory=lambda: ["Bridge Inn"])

    bridges = [Bridge(7, lanes=number) for number in range(3)]

    assert [(7, number, [], ["Bridge Inn"]) for number in range(3)] == [
        (bridge.length, bridge.lanes, bridge.tolls, bridge.inns) for bridge in bridges
    ]
    assert len(bridges) == len({id(bridge.tolls) for bridge in bridges})


@pytest.mark.parametrize(
    ("values", "named"),
    [((), {}), ((1, 2, 3, 4, 5), {}), ((1, "end"), {"end": "b"}), ((1, "b"), {"width": 2})],
)
def test_wrong_arguments_are_refused_for_the_first_object(
    values: tuple[object, ...], named: dict[str, object]
) -> None:
    @struct
    class Lane:
        length: int
        end: str
        season: Season = Season.WINTER
        inns: tuple[str, ...] = ()

    with pytest.raises(TypeError, match="__init__"):
        Lane(*values, **named)  # type: ignore[arg-type]  # that is the mistake


def test_struct_may_require_keyword_arguments() -> None:
    with pytest.raises(TypeError):
        Walk(1)  # type: ignore[call-arg]  # that is the mistake
    with pytest.raises(TypeError):
        Road(1)  # type: ignore[call-arg]  # likewise


def test_frozen_struct_is_immutable() -> None:
    road, walk = Road(1, "a"), Walk()

    with pytest.raises(FrozenInstanceError):
        road.length = 2  # type: ignore[misc]  # that is the mistake
    walk.steps = 5

    assert (1, 5) == (road.length, walk.steps)


def test_only_a_frozen_struct_has_a_hash() -> None:
    assert 1 == len({Road(1, "a", inns=()): 1, Road(1, "a", inns=()): 2})  # type: ignore[arg-type]  # a list has none
    with pytest.raises(TypeError):
        hash(Walk())


def test_struct_supports_repr_fields_and_copies() -> None:
    road = Road(1, "a", inns=["b"])

    assert "Road(length=1, end='a', season=<Season.WINTER: 2>, inns=['b'])" == repr(road)
    assert [("length", 1), ("end", "a"), ("season", Season.WINTER), ("inns", ["b"])] == items(road)
    assert road == copy.deepcopy(road) == pickle.loads(pickle.dumps(road))
    assert Road(2, "a", inns=["b"]) == replace(road, length=2)


def test_struct_may_be_subclassed() -> None:
    assert 4 == ShortWalk(steps=4).steps
    assert 5 == Walk(steps=5).steps


def test_structs_are_distinguished_from_other_objects() -> None:
    assert is_struct(Walk())
    assert not is_struct(Season.SUMMER)
