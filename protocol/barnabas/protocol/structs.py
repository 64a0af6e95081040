"""
Classes that are nothing but their fields.

What ``dataclasses`` would do, at a tenth of its price at import: a broker should be up in a blink,
it has hundreds of such classes, and a process uses a few of them. They share a constructor, as they
do comparison and representation; one of its own is generated for a class with many objects.

Messages are declared with ``message`` (``schema.py``), everything else with ``struct``::

    @struct
    class Bound:
        offset: int
        reasons: list[str] = fresh(factory=list)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Final, NoReturn, TypeVar, dataclass_transform, overload

from barnabas.protocol.generated import FEW, SourceWriter
from barnabas.protocol.named_tuple import NamedTuple


class Missing(Enum):
    """
    The type of ``MISSING``: no default was declared.
    """

    MISSING = "missing"


MISSING: Final = Missing.MISSING


class Fresh(NamedTuple):
    """
    A default that is made anew for each object.
    """

    factory: Callable[[], Any]


class _Constructor(NamedTuple):
    """
    What the constructor of a class takes: defaults by the names of the fields, ``MISSING`` where
    there is none; and whether the names must be given.
    """

    defaults: Mapping[str, Any]
    kw_only: bool


_CONSTRUCTORS: Final[dict[type, _Constructor]] = {}
_MADE: Final[Counter[type]] = Counter()
"""
How many objects of a class the shared constructor has made.
"""

C = TypeVar("C", bound=type)
T = TypeVar("T")


def fresh(*, factory: Callable[[], T]) -> T:
    """
    Declare a field of a struct whose default is what *factory* makes for each object.
    """
    default: Any = Fresh(factory)
    return default  # type: ignore[no-any-return]  # to checkers it is what the field will hold


@overload
def struct(cls: C, /) -> C: ...


@overload
def struct(*, frozen: bool = True, kw_only: bool = False) -> Callable[[C], C]: ...


@dataclass_transform(frozen_default=True, field_specifiers=(fresh,))
def struct(
    cls: C | None = None, /, *, frozen: bool = True, kw_only: bool = False
) -> C | Callable[[C], C]:
    """
    Make a struct of a class with annotated fields: constructor, comparison, representation, slots.

    Args:
        frozen: whether its attributes are fixed; only then it has a hash.
        kw_only: whether the constructor takes its values by name only.
    """

    def decorate(cls: C) -> C:
        defaults = {
            name: cls.__dict__.get(name, MISSING)
            for name, annotation in cls.__annotations__.items()
            if "ClassVar" not in str(annotation)
        }
        return make_struct(cls, defaults, frozen=frozen, kw_only=kw_only)

    return decorate if cls is None else decorate(cls)


def make_struct(cls: C, defaults: Mapping[str, Any], *, frozen: bool, kw_only: bool = True) -> C:
    """
    A class like *cls* whose only attributes are the names in *defaults*.

    Args:
        defaults: in the order of the fields, with ``MISSING`` for what the constructor requires.
            An empty list stands for a new one for each object, and so does ``Fresh``.
        frozen: whether assigning to an attribute is refused.
        kw_only: whether the constructor takes its values by name only.
    """
    namespace = {name: value for name, value in vars(cls).items() if name not in defaults}
    del namespace["__dict__"], namespace["__weakref__"]
    namespace = (_FROZEN if frozen else _METHODS) | namespace
    namespace["__slots__"] = namespace["__match_args__"] = tuple(defaults)
    made: C = type(cls)(cls.__name__, cls.__bases__, namespace)
    _CONSTRUCTORS[made] = _Constructor(defaults, kw_only)
    return made


def replace(struct: T, /, **changes: Any) -> T:
    """
    A copy of *struct* with some fields changed.
    """
    return type(struct)(**dict(items(struct)) | changes)


def is_frozen(cls: type) -> bool:
    """
    Whether the attributes of a struct are fixed.
    """
    return "__setattr__" in vars(cls)


def is_struct(value: object) -> bool:
    """
    Whether *value* is an object of a class that was made here.
    """
    return type(value) in _CONSTRUCTORS


def items(struct: Any) -> list[tuple[str, Any]]:
    """
    The fields of a struct with their values, in the order of their declaration.
    """
    return [(name, getattr(struct, name)) for name in struct.__match_args__]


def _init_few(self: Any, *values: Any, **named: Any) -> None:
    """
    The constructor of a class until there are more than a few objects, or one is made wrongly: the
    generated one, which then takes its place, refuses that as Python does.
    """
    cls: Any = next(cls for cls in type(self).__mro__ if cls in _CONSTRUCTORS)
    defaults, kw_only = _CONSTRUCTORS[cls]
    given = dict(zip(defaults, values, strict=False)) | named
    _MADE[cls] += 1
    if (
        _MADE[cls] > FEW
        or (values and kw_only)
        or len(given) < len(values) + len(named)
        or any(default is MISSING and name not in given for name, default in defaults.items())
        or not given.keys() <= defaults.keys()
    ):
        cls.__init__ = _compile_init(cls)
        cls.__init__(self, *values, **named)
        return
    for name, default in defaults.items():
        value = given[name] if name in given else _default(default)
        object.__setattr__(self, name, value)


def _default(declared: Any) -> Any:
    if isinstance(declared, Fresh):
        return declared.factory()
    return [] if declared == [] else declared


def _compile_init(cls: type) -> Callable[..., None]:
    source = SourceWriter(MISSING=MISSING)
    parameters, body = ["self"], []
    defaults, kw_only = _CONSTRUCTORS[cls]
    for name, default in defaults.items():
        value = name
        if default is MISSING:
            parameters.append(name)
        elif default == []:
            parameters.append(f"{name}=MISSING")
            value = f"[] if {name} is MISSING else {name}"
        elif isinstance(default, Fresh):
            parameters.append(f"{name}=MISSING")
            factory = source.constant(f"make_{name}", default.factory)
            value = f"{factory}() if {name} is MISSING else {name}"
        else:
            parameters.append(f"{name}={source.constant(f'default_{name}', default)}")
        if is_frozen(cls):
            # The setter of the slot goes past __setattr__, and is quicker than that of object.
            setter = source.constant(f"set_{name}", getattr(cls, name).__set__)
            body.append(f"{setter}(self, {value})")
        else:
            body.append(f"self.{name} = {value}")
    if body and kw_only:
        parameters.insert(1, "*")
    with source.block(f"def __init__({', '.join(parameters)}):"):
        for line in body or ["pass"]:
            source.line(line)
    init: Callable[..., None] = source.compile(
        "__init__", f"{cls.__module__}.{cls.__name__}.__init__"
    )
    return init


def _eq(self: Any, other: object) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    return items(self) == items(other)


def _hash(self: Any) -> int:
    return hash(tuple(items(self)))


def _repr(self: Any) -> str:
    shown = ", ".join(f"{name}={_shown(value)}" for name, value in items(self))
    return f"{type(self).__name__}({shown})"


def _shown(value: Any) -> str:
    if isinstance(value, bytearray | memoryview):
        return f"<{len(value)} bytes>"
    return repr(value)


def _reduce(self: Any) -> tuple[Any, ...]:
    return _restore, (type(self), dict(items(self)))


def _restore(cls: type[T], values: dict[str, Any]) -> T:
    return cls(**values)


def _refuse_set(self: Any, name: str, _value: Any) -> NoReturn:
    from dataclasses import FrozenInstanceError  # noqa: PLC0415  # only for mistakes

    raise FrozenInstanceError(f"cannot assign to {name} of a {type(self).__name__}")


def _refuse_delete(self: Any, name: str) -> NoReturn:
    from dataclasses import FrozenInstanceError  # noqa: PLC0415  # only for mistakes

    raise FrozenInstanceError(f"cannot delete {name} of a {type(self).__name__}")


_METHODS: Final[dict[str, Any]] = {
    "__init__": _init_few,
    "__eq__": _eq,
    "__hash__": None,
    "__repr__": _repr,
    "__reduce__": _reduce,
}
_FROZEN: Final[dict[str, Any]] = _METHODS | {
    "__hash__": _hash,
    "__setattr__": _refuse_set,
    "__delattr__": _refuse_delete,
}
