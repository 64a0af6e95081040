from __future__ import annotations

import copy
import pickle
import typing
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import pytest

from barnabas.protocol import structs

T = TypeVar("T")


class Place(structs.NamedTuple, Generic[T]):
    street: str
    number: int = 1
    kept: T | None = None

    @property
    def address(self) -> str:
        return f"{self.number} {self.street}"


class Original(typing.NamedTuple):
    street: str
    number: int = 1
    kept: str | None = None


class Corner(Place[str]):
    __slots__ = ()

    def __str__(self) -> str:
        return "corner"


Maker = Callable[..., Any]


def a_new_class() -> Maker:
    class Place(structs.NamedTuple):
        street: str
        number: int = 1
        kept: str | None = None

    return Place


@pytest.fixture(params=["first", "later", "original"])
def make(request: pytest.FixtureRequest) -> Maker:
    """
    A class without an object, which has no constructor yet; one with an object; one of ``typing``.
    """
    if request.param == "original":
        return Original
    made = a_new_class()
    if request.param == "later":
        made("High Street")
    return made


def test_named_tuple_takes_values_in_order_or_by_name(make: Maker) -> None:
    assert ("Mill Lane", 1, None) == make("Mill Lane")
    assert ("Mill Lane", 2, None) == make(number=2, street="Mill Lane")
    assert (
        ("Mill Lane", 2, "key") == make("Mill Lane", 2, kept="key") == make("Mill Lane", 2, "key")
    )


@pytest.mark.parametrize(
    ("values", "named"),
    [((), {}), (("a", 1, None, 4), {}), (("a",), {"street": "b"}), (("a",), {"age": 2})],
)
def test_named_tuple_refuses_unsuitable_arguments(
    make: Maker, values: tuple[object, ...], named: dict[str, object]
) -> None:
    with pytest.raises(TypeError):
        make(*values, **named)
    assert ("a", 1, None) == make("a")


def test_named_tuple_values_are_accessible_by_name(make: Maker) -> None:
    place = make("Mill Lane", 2)

    assert ("Mill Lane", 2) == (place.street, place.number)
    assert ("street", "number", "kept") == place._fields == type(place).__match_args__
    assert {"number": 1, "kept": None} == type(place)._field_defaults
    assert {"street": "Mill Lane", "number": 2, "kept": None} == place._asdict()
    assert f"{type(place).__name__}(street='Mill Lane', number=2, kept=None)" == repr(place)
    with pytest.raises(AttributeError):
        place.number = 3
    with pytest.raises(AttributeError):
        place.other = 3


def test_named_tuple_replace_returns_a_changed_copy(make: Maker) -> None:
    place = make("Mill Lane", 2)

    assert make("Mill Lane", 3) == place._replace(number=3)
    assert place == type(place)._make(["Mill Lane", 2, None])
    with pytest.raises(ValueError, match="age"):
        place._replace(age=3)
    with pytest.raises(TypeError, match="Expected 3 arguments, got 1"):
        type(place)._make(["Mill Lane"])


def test_named_tuple_can_be_copied() -> None:
    place = Place("Mill Lane", 2, kept="key")

    assert place == copy.deepcopy(place) == pickle.loads(pickle.dumps(place))
    assert Place is type(pickle.loads(pickle.dumps(place)))


def test_named_tuple_class_may_have_methods_and_subclasses() -> None:
    assert "2 Mill Lane" == Place[str]("Mill Lane", 2).address
    assert "2 Mill Lane" == Corner("Mill Lane", 2).address
    assert "corner" == str(Corner("Mill Lane"))
    assert Place is type(Place("Mill Lane"))


def test_named_tuple_field_without_a_default_cannot_follow_one_with_a_default() -> None:
    with pytest.raises(TypeError, match="without a default"):

        class Wrong(structs.NamedTuple):
            number: int = 1
            street: str  # type: ignore[misc]  # that is the mistake
