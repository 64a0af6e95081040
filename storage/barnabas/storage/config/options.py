"""
Declaring configuration options.

A table of options is a class whose objects do not change: the attribute is Kafka's name with ``_``
for ``.``, so that a name is written once; the annotation is Kafka's type; ``option`` adds the
default, the range and one sentence. Parsing, ``DescribeConfigs`` and the reference page are all
made from the table::

    @table
    class LogConfig(Options):
        segment_bytes: Int = option(1 * GiB, "Roll the active segment ...", at_least=MiB)

``option_values`` has the class of one option, and reads and checks its values.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Final, NoReturn, Self, TypeVar, dataclass_transform

from barnabas.protocol.structs import MISSING, NamedTuple
from barnabas.storage.config.option_values import (
    Option,
    OptionType,
    UnknownOption,
    Update,
    Validator,
)

Bool = Annotated[bool, OptionType.BOOLEAN]
Text = Annotated[str, OptionType.STRING]
Int = Annotated[int, OptionType.INT]
Short = Annotated[int, OptionType.SHORT]
Long = Annotated[int, OptionType.LONG]
Double = Annotated[float, OptionType.DOUBLE]
Names = Annotated[tuple[str, ...], OptionType.LIST]
Password = Annotated[str, OptionType.PASSWORD]
Class = Annotated[str, OptionType.CLASS]


class _Declared(NamedTuple):
    """
    The arguments of ``option``.
    """

    default: Any
    facts: Mapping[str, Any] | None  # None for a field that is declared without it


class _Field(NamedTuple):
    """
    A field of a table, with its annotation as it is written.
    """

    annotation: str
    default: Any
    facts: Mapping[str, Any] | None


def option(
    default: Any = MISSING,
    doc: str = "",
    *,
    at_least: float | None = None,
    at_most: float | None = None,
    one_of: tuple[str, ...] | None = None,
    unique: bool = False,
    also: tuple[Any, ...] = (),
    validator: Validator | None = None,
    update: Update = Update.READ_ONLY,
    synonyms: tuple[str, ...] = (),
    internal: bool = False,
) -> Any:
    """
    Declare one option of a table; without *default* it must be given.
    """
    facts = {
        "doc": doc,
        "at_least": at_least,
        "at_most": at_most,
        "one_of": one_of,
        "unique": unique,
        "also": also,
        "validator": validator,
        "update": update,
        "synonyms": synonyms,
        "internal": internal,
    }
    return _Declared(default, facts)


T = TypeVar("T", bound="type[Options]")

_TYPES: Final = {
    "Bool": OptionType.BOOLEAN,
    "Text": OptionType.STRING,
    "Int": OptionType.INT,
    "Short": OptionType.SHORT,
    "Long": OptionType.LONG,
    "Double": OptionType.DOUBLE,
    "Names": OptionType.LIST,
    "Password": OptionType.PASSWORD,
    "Class": OptionType.CLASS,
}
"""
The types as annotations name them. There are hundreds of options, and to have Python evaluate an
annotation takes longer than to look it up.
"""
_OR_NONE: Final = " | None"


# To checkers every option has a default. Those that have none are few, and are given by a file or
# the environment, which no checker sees.
@dataclass_transform(frozen_default=True, kw_only_default=True)
def table(cls: T) -> T:
    """
    Make a table of options of a class whose fields are declared with ``option``.

    A field that is declared with a plain value is no option, but an attribute of the table.
    """
    return section(cls)


@dataclass_transform(frozen_default=True, kw_only_default=True)
def section(cls: T) -> T:
    """
    Declare a part of a table; the table inherits from its sections.
    """
    fields: dict[str, _Field] = {}
    for base in reversed(cls.__mro__[1:]):
        fields |= vars(base).get("_fields", {})
    for name, annotation in cls.__annotations__.items():
        if not annotation.startswith("ClassVar"):
            value = vars(cls)[name]
            declared = value if isinstance(value, _Declared) else _Declared(value, None)
            fields[name] = _Field(annotation, *declared)
            delattr(cls, name)
    cls._fields = fields
    return cls


def _option(name: str, field: _Field) -> Option:
    required = field.default is MISSING
    return Option(
        name=name.replace("_", "."),
        type=_TYPES[field.annotation.removesuffix(_OR_NONE)],
        default=None if required else field.default,
        nullable=field.annotation.endswith(_OR_NONE),
        required=required,
        **field.facts or {},
    )


class Options:
    """
    The base of all tables of options.

    Tables are built, compared and shown by the names of their fields, for which no code is
    generated: of a table of a hundred options that would take as long as loading twenty modules.
    """

    kind: ClassVar[str] = "option"
    _declared: ClassVar[Mapping[str, Option]]
    _fields: ClassVar[Mapping[str, _Field]] = {}

    def __init__(self, **values: Any) -> None:
        """
        Raises:
            TypeError: a name is no field, or a field without a default is missing.
        """
        if not values.keys() <= self._fields.keys():
            unknown = ", ".join(values.keys() - self._fields.keys())
            raise TypeError(f"{type(self).__name__} has no {unknown}")
        for name, field in self._fields.items():
            value = values.get(name, field.default)
            if value is MISSING:
                raise TypeError(f"{type(self).__name__} needs {name}")
            self.__dict__[name] = value
        self.check()

    def check(self) -> None:
        """
        Raises:
            ConfigError: values do not fit one another.
        """

    def _items(self) -> list[tuple[str, Any]]:
        return [(name, getattr(self, name)) for name in self._fields]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Options) or type(other) is not type(self):
            return NotImplemented
        return self._items() == other._items()

    def __hash__(self) -> int:
        return hash(tuple(self._items()))

    def __repr__(self) -> str:
        changed = (
            f"{k}={'[hidden]' if self._fields[k].annotation.startswith('Password') else repr(v)}"
            for k, v in self._items()
            if v != self._fields[k].default and self._fields[k].facts is not None
        )
        return f"{type(self).__name__}({', '.join(changed)})"

    def __setattr__(self, name: str, _value: Any) -> NoReturn:
        raise AttributeError(f"cannot assign to {name} of a {type(self).__name__}")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"cannot delete {name} of a {type(self).__name__}")

    @classmethod
    def options(cls) -> Mapping[str, Option]:
        """
        The options of the table by Kafka's name, in the order of their declaration.
        """
        if "_declared" not in cls.__dict__:
            declared = (
                _option(name, field)
                for name, field in cls._fields.items()
                if field.facts is not None
            )
            cls._declared = MappingProxyType({option.name: option for option in declared})
        return cls._declared

    @classmethod
    def parse(cls, texts: Mapping[str, str | None]) -> Self:
        """
        The table with the values that *texts* gives by Kafka's names, defaults for the rest.

        Raises:
            UnknownOption: a name is not in the table.
            InvalidValue: a value is not of its option's type or range, or is missing.
        """
        return cls(**cls._values(texts))

    def overridden(self, texts: Mapping[str, str | None]) -> Self:
        """
        This table with some values replaced, read and checked like :meth:`parse`.
        """
        return self.replaced(**self._values(texts))

    def replaced(self, **values: Any) -> Self:
        """
        This table with some values replaced by others of the right type.
        """
        return type(self)(**dict(self._items()) | values)

    @classmethod
    def _values(cls, texts: Mapping[str, str | None]) -> dict[str, Any]:
        known = cls.options()
        values = {}
        for name, text in texts.items():
            if name not in known:
                raise UnknownOption(name, known, cls.kind)
            values[name.replace(".", "_")] = known[name].parse(text)
        return values
