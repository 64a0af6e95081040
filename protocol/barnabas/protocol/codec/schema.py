"""
Declaring the messages of the wire and the records of Kafka's internal logs.

A message is a class with annotated fields. One class stands for all versions: ``since`` says which
of them have a field, and its value in all others::

    API = Api(12, versions=range(5), flexible=4)

    @message
    class HeartbeatRequest:
        api: ClassVar[Api] = API

        group_id: str
        generation_id: int32
        member_id: str
        group_instance_id: str | None = since(3, default=None)

The annotation is the type on the wire: ``int32`` and its like, ``bool``, ``float64``, ``str``,
``bytes``, ``Records``, ``UUID``, another message (a nested struct) or a ``list`` of one of these;
``| None`` makes it nullable. A field that some version of the API lacks needs a default, and so
does a tagged one. Structs that only occur inside of others have no ``api``: what is flexible is
decided by the message that they are in.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from enum import Enum
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Final,
    Protocol,
    TypeVar,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
    overload,
)
from uuid import UUID

from barnabas.protocol.structs import MISSING, NamedTuple, make_struct, replace, struct

__all__ = [
    "ZERO_UUID",
    "Api",
    "Array",
    "Field",
    "Fixed",
    "Kind",
    "Message",
    "Records",
    "Struct",
    "Type",
    "fields",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "message",
    "replace",
    "since",
    "uint16",
    "uint32",
]

ZERO_UUID: Final = UUID(int=0)
"""
The UUID that stands for none.
"""


@struct
class Api:
    """
    The identity of a message: an API of the wire, or a type of record.

    Args:
        key: the API key, or the type of the record.
        versions: those that can be read and written.
        flexible: the first version with compact lengths and tagged fields, if there is one.
        also_advertised: versions below, which a broker lists without being able to read them.
        is_listed: whether a broker lists the API in ApiVersions.
    """

    key: int
    versions: range
    flexible: int | None = None
    also_advertised: range = range(0)
    is_listed: bool = True

    @property
    def advertised(self) -> range:
        """
        The versions that an ApiVersions response lists.
        """
        return range((self.also_advertised or self.versions).start, self.versions.stop)

    def is_flexible(self, version: int) -> bool:
        """
        Whether *version* has compact lengths and tagged fields (KIP-482).
        """
        return self.flexible is not None and version >= self.flexible


class Message(Protocol):
    """
    A class made by ``message`` that can stand on its own.
    """

    api: ClassVar[Api]


@struct
class Fixed:
    """
    A type whose values all have the same size: its letter in the format of ``struct``.
    """

    format: str


class Kind(Enum):
    """
    The types that have a length of their own, and the one that is a class of Python's.
    """

    STRING = "string"
    BYTES = "bytes"
    RECORDS = "records"
    UUID = "uuid"


@struct
class Array:
    """
    A count and that many elements.
    """

    element: Type


@struct
class Struct:
    """
    The fields of another message, in its place.
    """

    cls: type


Type = Fixed | Kind | Array | Struct

int8 = Annotated[int, Fixed("b")]
int16 = Annotated[int, Fixed("h")]
uint16 = Annotated[int, Fixed("H")]
int32 = Annotated[int, Fixed("i")]
uint32 = Annotated[int, Fixed("I")]
int64 = Annotated[int, Fixed("q")]
float64 = Annotated[float, Fixed("d")]
Records = Annotated[bytes | bytearray | memoryview, Kind.RECORDS]
"""
Whole record batches. Decoding gives a slice of what was received, encoding copies nothing.
"""

_TYPES: Final[dict[type, Type]] = {
    bool: Fixed("?"),
    str: Kind.STRING,
    bytes: Kind.BYTES,
    UUID: Kind.UUID,
}


class Since(NamedTuple):
    """
    The arguments of ``since``.
    """

    version: int
    until: int | None
    default: Any
    nullable: int
    tag: int | None
    compact: bool


def since(
    version: int,
    *,
    until: int | None = None,
    default: Any = MISSING,
    nullable: int = 0,
    tag: int | None = None,
    compact: bool = True,
) -> Any:
    """
    Declare a field that only some versions have, or that is special in another way.

    Args:
        version: the first version that has it.
        until: the last version that has it.
        default: its value in all other versions, and where the constructor is not given one. An
            empty list stands for a new one for each message.
        nullable: the first version in which it may be null, for a field annotated ``| None``.
        tag: makes it a tagged field. It is left out when it has its default.
        compact: false for a string that keeps its two-byte length in flexible versions.
    """
    return Since(version, until, default, nullable, tag, compact)


class Field(NamedTuple):
    """
    A field of a message, with its annotation understood.

    ``nullable`` is the first version in which it may be null, ``None`` if it never may.
    """

    name: str
    type: Type
    version: int
    until: int | None
    default: Any
    nullable: int | None
    tag: int | None
    compact: bool

    def is_in(self, version: int) -> bool:
        """
        Whether *version* has the field.
        """
        return self.version <= version and (self.until is None or version <= self.until)

    def is_nullable_in(self, version: int) -> bool:
        """
        Whether the field may be null in *version*.
        """
        return self.nullable is not None and version >= self.nullable


C = TypeVar("C", bound=type)

_DECLARED: Final[dict[type, dict[str, Since]]] = {}
_FIELDS: Final[dict[type, tuple[Field, ...]]] = {}
_HINTS: Final[dict[tuple[type | str, str], Any]] = {}
_BUILTIN: Final[dict[str, type]] = {kind.__name__: kind for kind in (bool, str, bytes)}


@overload
def message(cls: C, /) -> C: ...


@overload
def message(*, frozen: bool) -> Callable[[C], C]: ...


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(since,))
def message(cls: C | None = None, /, *, frozen: bool = True) -> C | Callable[[C], C]:
    """
    Make a message of a class: keyword-only constructor, comparison, representation, slots.

    Args:
        frozen: whether its attributes are fixed. Building a frozen object takes twice as long, so
            what is built for each partition of a fetch or a produce request is not.
    """

    def decorate(cls: C) -> C:
        declared = {
            name: _declaration(cls.__dict__.get(name, MISSING))
            for name, annotation in cls.__annotations__.items()
            if "ClassVar" not in str(annotation)
        }
        defaults = {name: facts.default for name, facts in declared.items()}
        made = make_struct(cls, defaults, frozen=frozen)
        _DECLARED[made] = declared
        return made

    return decorate if cls is None else decorate(cls)


def _declaration(value: Any) -> Since:
    return value if isinstance(value, Since) else Since(0, None, value, 0, None, True)


def fields(cls: type) -> tuple[Field, ...]:
    """
    The fields of a message, in the order of the wire.

    Annotations are only looked at when a class is asked for: a process uses few of them.

    Raises:
        TypeError: *cls* is not a message, or its declaration makes no sense.
    """
    found = _FIELDS.get(cls)
    if found is None:
        if cls not in _DECLARED:
            raise TypeError(f"{cls.__name__} is not a message")
        found = tuple(
            _field(cls, name, facts, _hint(cls, cls.__annotations__[name]))
            for name, facts in _DECLARED[cls].items()
        )
        _FIELDS[cls] = found
    return found


def _hint(cls: type, annotation: str) -> Any:
    """
    The value of an annotation. Most are one of a few names, and ``typing.get_type_hints`` would
    compile each of them.
    """
    scope = vars(sys.modules[cls.__module__])
    if annotation in scope:
        return scope[annotation]
    if annotation in _BUILTIN:
        return _BUILTIN[annotation]
    nested = any(isinstance(value, type) for value in vars(cls).values())
    key = (cls if nested else cls.__module__, annotation)
    if key not in _HINTS:
        _HINTS[key] = eval(annotation, dict(vars(cls)), scope)
    return _HINTS[key]


def _field(cls: type, name: str, facts: Since, hint: Any) -> Field:
    members = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    nullable = NoneType in members
    types = [member for member in members if member is not NoneType]
    if len(types) != 1:
        raise TypeError(f"{cls.__name__}.{name}: {hint} is not a type of the wire")
    if facts.tag is not None and facts.default is MISSING:
        raise TypeError(f"{cls.__name__}.{name}: a tagged field needs a default")
    return Field(
        name=name,
        type=_type(cls, name, types[0]),
        version=facts.version,
        until=facts.until,
        default=facts.default,
        nullable=facts.nullable if nullable else None,
        tag=facts.tag,
        compact=facts.compact,
    )


def _type(cls: type, name: str, hint: Any) -> Type:
    if get_origin(hint) is list:
        return Array(_type(cls, name, get_args(hint)[0]))
    if get_origin(hint) is Annotated:
        return next(fact for fact in get_args(hint) if isinstance(fact, Fixed | Kind))
    if hint in _TYPES:
        return _TYPES[hint]
    if hint in _DECLARED:
        return Struct(hint)
    raise TypeError(f"{cls.__name__}.{name}: {hint} is not a type of the wire")
