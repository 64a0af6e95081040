"""
Classes that are nothing but their fields, made ten times as quickly as by the standard library.

``dataclasses`` and ``typing.NamedTuple`` compile the methods of a class when it is made. A start
makes hundreds of these classes, of which it uses a few: here a class gets its constructor with its
first object, and shares all else. With ``typing.NamedTuple`` a start takes 1.4 to 5 % longer; the
classes of modules that mypyc compiles are made by the original whatever they import.

Messages are declared with ``message`` (``schema.py``), tuples with ``NamedTuple``, everything else
with ``struct``::

    @struct
    class Bound:
        offset: int
        reasons: list[str] = fresh(factory=list)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar, dataclass_transform, overload

if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple  # noqa: PLC0414  # For whom it is exported.
else:
    from collections import _tuplegetter

    class _NamedTupleType(type):
        """
        Makes the fields of a class out of its annotations.
        """

        def __new__(cls, name, bases, namespace):
            fields = tuple(namespace.get("__annotations__", ()))
            if fields:
                defaults = {field: namespace[field] for field in fields if field in namespace}
                if tuple(defaults) != fields[len(fields) - len(defaults) :]:
                    raise TypeError(f"{name}: a field without a default follows one with a default")
                namespace |= {field: _tuplegetter(at, None) for at, field in enumerate(fields)}
                namespace |= {
                    "__match_args__": fields,
                    "__slots__": (),
                    "_field_defaults": defaults,
                    "_fields": fields,
                }
            return super().__new__(cls, name, bases, namespace)

    class NamedTuple(tuple, metaclass=_NamedTupleType):
        """
        A tuple whose values have names.
        """

        __slots__ = ()

        def __new__(cls, *values, **named):
            names = "".join(f"{name}, " for name in cls._fields)
            new = eval(f"lambda _cls, {names}: _new(_cls, ({names}))", {"_new": tuple.__new__})
            new.__name__, new.__defaults__ = "__new__", tuple(cls._field_defaults.values())
            cls.__new__ = staticmethod(new)
            return cls.__new__(cls, *values, **named)

        @classmethod
        def _make(cls, values):
            made = tuple.__new__(cls, values)
            if len(made) != len(cls._fields):
                raise TypeError(f"Expected {len(cls._fields)} arguments, got {len(made)}")
            return made

        def _replace(self, /, **changes):
            if unknown := changes.keys() - set(self._fields):
                raise ValueError(f"Got unexpected field names: {sorted(unknown)}")
            return self._make((self._asdict() | changes).values())

        def _asdict(self):
            return dict(zip(self._fields, self, strict=True))

        def __repr__(self):
            shown = (f"{name}={value!r}" for name, value in self._asdict().items())
            return f"{type(self).__name__}({', '.join(shown)})"

        def __getnewargs__(self):
            return tuple(self)


class Missing(Enum):
    """
    The type of ``MISSING``: no default was declared.
    """

    MISSING = "missing"


MISSING: Final = Missing.MISSING


class Fresh(NamedTuple):
    """
    A default that a factory makes for each object.
    """

    factory: Callable[[], Any]


class _Constructor(NamedTuple):
    """
    The parameters of a constructor: defaults by the names of the fields, ``MISSING`` where there is
    none; and whether the names must be given.
    """

    defaults: Mapping[str, Any]
    kw_only: bool


_CONSTRUCTORS: Final[dict[type, _Constructor]] = {}
_COPIERS: Final[dict[type, Callable[..., Any]]] = {}
"""What makes a changed copy of an object, of each class that it was asked for."""
_VALUES: Final[dict[type, Callable[[Any], Any]]] = {}
"""What gets the values of all fields of an object, likewise."""

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
    copy = _COPIERS.get(type(struct)) or _compile_copier(type(struct))
    made: T = copy(struct, **changes)
    return made


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


def _init_first(self: Any, *values: Any, **named: Any) -> None:
    """
    The constructor of a class until there is an object.
    """
    cls: Any = next(cls for cls in type(self).__mro__ if cls in _CONSTRUCTORS)
    cls.__init__ = _compile_init(cls)
    cls.__init__(self, *values, **named)


def _compile_init(cls: type) -> Callable[..., None]:
    namespace: dict[str, Any] = {"MISSING": MISSING}
    parameters, body = ["self"], []
    defaults, kw_only = _CONSTRUCTORS[cls]
    for name, default in defaults.items():
        value = name
        if default is MISSING:
            parameters.append(name)
        elif default == [] or isinstance(default, Fresh):
            namespace[f"_make_{name}"] = default.factory if isinstance(default, Fresh) else list
            parameters.append(f"{name}=MISSING")
            value = f"_make_{name}() if {name} is MISSING else {name}"
        else:
            namespace[f"_default_{name}"] = default
            parameters.append(f"{name}=_default_{name}")
        if is_frozen(cls):
            # The setter of the slot goes past __setattr__, and is quicker than that of object.
            namespace[f"_set_{name}"] = getattr(cls, name).__set__
            body.append(f"_set_{name}(self, {value})")
        else:
            body.append(f"self.{name} = {value}")
    if body and kw_only:
        parameters.insert(1, "*")
    source = f"def __init__({', '.join(parameters)}):\n    " + "\n    ".join(body or ["pass"])
    exec(compile(source, f"<{cls.__module__}.{cls.__name__}.__init__>", "exec"), namespace)
    init: Callable[..., None] = namespace["__init__"]
    return init


def _compile_copier(cls: Any) -> Callable[..., Any]:
    names = cls.__match_args__
    parameters = "".join(f", {name}=MISSING" for name in names)
    values = ", ".join(f"{name}=self.{name} if {name} is MISSING else {name}" for name in names)
    source = f"lambda self, /{', *' if names else ''}{parameters}: cls({values})"
    code = compile(source, f"<replace {cls.__module__}.{cls.__name__}>", "eval")
    copy: Callable[..., Any] = eval(code, {"MISSING": MISSING, "cls": cls})
    _COPIERS[cls] = copy
    return copy


def _values(struct: Any) -> Any:
    """
    The values of all fields, as something that can be compared.
    """
    get = _VALUES.get(type(struct))
    if get is None:
        names = type(struct).__match_args__
        get = _VALUES[type(struct)] = attrgetter(*names) if names else lambda _: ()
    return get(struct)


def _eq(self: Any, other: object) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    return _values(self) == _values(other)


def _hash(self: Any) -> int:
    return hash(_values(self))


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
    "__init__": _init_first,
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
