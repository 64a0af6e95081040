"""
Classes that are nothing but their fields.

What ``dataclasses`` would do, at a fifth of its price at import: there are hundreds of messages, a
process uses a few of them, and a broker should be up in a blink. The constructor of a class is
generated when it is first called; comparison and representation are shared by all classes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import FrozenInstanceError
from enum import Enum
from typing import Any, Final, NoReturn, TypeVar

from barnabas.protocol.generated import SourceWriter


class Missing(Enum):
    """
    The type of ``MISSING``: no default was declared.
    """

    MISSING = "missing"


MISSING: Final = Missing.MISSING

_DEFAULTS: Final[dict[type, Mapping[str, Any]]] = {}

C = TypeVar("C", bound=type)
T = TypeVar("T")


def make_struct(cls: C, defaults: Mapping[str, Any], *, frozen: bool) -> C:
    """
    A class like *cls* whose only attributes are the names in *defaults*.

    Args:
        defaults: in the order of the fields, with ``MISSING`` for what the constructor requires.
            An empty list stands for a new one for each object.
        frozen: whether assigning to an attribute is refused.
    """
    namespace = {name: value for name, value in vars(cls).items() if name not in defaults}
    del namespace["__dict__"], namespace["__weakref__"]
    namespace = (_FROZEN if frozen else _METHODS) | namespace
    namespace["__slots__"] = namespace["__match_args__"] = tuple(defaults)
    made: C = type(cls)(cls.__name__, cls.__bases__, namespace)
    _DEFAULTS[made] = defaults
    return made


def replace(struct: T, /, **changes: Any) -> T:
    """
    A copy of *struct* with some fields changed.
    """
    return type(struct)(**dict(_items(struct)) | changes)


def is_frozen(cls: type) -> bool:
    """
    Whether the attributes of a struct are fixed.
    """
    return "__setattr__" in vars(cls)


def _items(struct: Any) -> list[tuple[str, Any]]:
    return [(name, getattr(struct, name)) for name in struct.__slots__]


def _init_once(self: Any, **values: Any) -> None:
    """
    The constructor of a class until its first call, which puts the generated one in its place.
    """
    cls = type(self)
    cls.__init__ = _compile_init(cls)
    cls.__init__(self, **values)


def _compile_init(cls: type) -> Callable[..., None]:
    source = SourceWriter(MISSING=MISSING)
    parameters, body = ["self"], []
    for name, default in _DEFAULTS[cls].items():
        value = name
        if default is MISSING:
            parameters.append(name)
        elif default == []:
            parameters.append(f"{name}=MISSING")
            value = f"[] if {name} is MISSING else {name}"
        else:
            parameters.append(f"{name}={source.constant(f'default_{name}', default)}")
        if is_frozen(cls):
            # The setter of the slot goes past __setattr__, and is quicker than that of object.
            setter = source.constant(f"set_{name}", getattr(cls, name).__set__)
            body.append(f"{setter}(self, {value})")
        else:
            body.append(f"self.{name} = {value}")
    if body:
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
    return _items(self) == _items(other)


def _hash(self: Any) -> int:
    return hash(tuple(_items(self)))


def _repr(self: Any) -> str:
    shown = ", ".join(f"{name}={_shown(value)}" for name, value in _items(self))
    return f"{type(self).__name__}({shown})"


def _shown(value: Any) -> str:
    if isinstance(value, bytearray | memoryview):
        return f"<{len(value)} bytes>"
    return repr(value)


def _reduce(self: Any) -> tuple[Any, ...]:
    return _restore, (type(self), dict(_items(self)))


def _restore(cls: type[T], values: dict[str, Any]) -> T:
    return cls(**values)


def _refuse_set(self: Any, name: str, _value: Any) -> NoReturn:
    raise FrozenInstanceError(f"cannot assign to {name} of a {type(self).__name__}")


def _refuse_delete(self: Any, name: str) -> NoReturn:
    raise FrozenInstanceError(f"cannot delete {name} of a {type(self).__name__}")


_METHODS: Final[dict[str, Any]] = {
    "__init__": _init_once,
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
