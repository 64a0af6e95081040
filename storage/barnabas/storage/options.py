"""
Declaring configuration options.

A table of options is a class whose objects do not change: the attribute is Kafka's name with ``_``
for ``.``, so that a name is written once; the annotation is Kafka's type; ``option`` adds the
default, the range and one sentence. Parsing, ``DescribeConfigs`` and the reference page are all
made from the table::

    @table
    class LogConfig(Options):
        segment_bytes: Int = option(1 * GiB, "Roll the active segment ...", at_least=MiB)

Values are checked in the words of Kafka's ``ConfigDef``, which is what users search for.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import FrozenInstanceError
from enum import Enum, IntEnum
from types import MappingProxyType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Final,
    NamedTuple,
    NoReturn,
    Self,
    TypeVar,
    dataclass_transform,
)

from barnabas.protocol.structs import MISSING, struct

KiB, MiB, GiB = 1024, 1024**2, 1024**3
SECONDS, MINUTES, HOURS, DAYS = 1_000, 60_000, 3_600_000, 86_400_000
INT_MAX, LONG_MAX = 2**31 - 1, 2**63 - 1


class OptionType(IntEnum):
    """
    The type of a value, with the numbers that ``DescribeConfigs`` uses on the wire.
    """

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class Update(Enum):
    """
    Whether a running broker takes a new value (Kafka's ``dynamic update mode``).
    """

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


Bool = Annotated[bool, OptionType.BOOLEAN]
Text = Annotated[str, OptionType.STRING]
Int = Annotated[int, OptionType.INT]
Short = Annotated[int, OptionType.SHORT]
Long = Annotated[int, OptionType.LONG]
Double = Annotated[float, OptionType.DOUBLE]
Names = Annotated[tuple[str, ...], OptionType.LIST]

_LIMITS: Mapping[OptionType, int] = {
    OptionType.SHORT: 2**15,
    OptionType.INT: 2**31,
    OptionType.LONG: 2**63,
}


class ConfigError(ValueError):
    """
    An option is unknown, or its value is not acceptable.
    """


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """
    The end of a sentence that names what is most like *name*; nothing if nothing is like it.
    """
    nearest = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"; did you mean {nearest[0]}?" if nearest else ""


class UnknownOption(ConfigError):
    """
    No option has this name; the sentence names the nearest one that exists.
    """

    def __init__(self, name: str, known: Iterable[str], kind: str = "option") -> None:
        hint = did_you_mean(name, known)
        super().__init__(f"Unknown {kind} {name}{hint}")
        self.name = name


class InvalidValue(ConfigError):
    """
    The value of an option has the wrong type or is out of its range.
    """

    def __init__(self, name: str, value: object, reason: str) -> None:
        super().__init__(f"Invalid value {value} for configuration {name}: {reason}")
        self.name, self.value = name, value


@struct
class Rule:
    """
    What a value must be, where that is neither a range nor a choice.
    """

    text: str
    """The acceptable values, for people."""
    holds: Callable[[Any], bool]
    reason: str
    """Why a value for which it does not hold is refused; ``{name}`` stands for the option."""


@struct(kw_only=True)
class Option:
    """
    One option: what Kafka calls it, what it may be, what it is unless set, what it does.
    """

    name: str
    type: OptionType
    default: Any
    doc: str
    nullable: bool = False
    at_least: float | None = None
    at_most: float | None = None
    one_of: tuple[str, ...] | None = None
    unique: bool = False  # whether items of a list count once, and are not empty; so are choices
    also: tuple[Any, ...] = ()  # single values outside the range that are fine
    rule: Rule | None = None
    update: Update = Update.READ_ONLY
    synonyms: tuple[str, ...] = ()
    internal: bool = False
    required: bool = False

    def parse(self, text: str | None) -> Any:
        """
        The value that *text* stands for.

        Raises:
            InvalidValue: it is not of the option's type, or not in its range.
        """
        if text is None:
            if self.nullable:
                return None
            raise InvalidValue(self.name, text, "a value is required")
        value = _PARSERS[self.type](self, text.strip())
        self.check(value)
        return value

    def check(self, value: Any) -> None:
        """
        Raises:
            InvalidValue: *value* is not in the option's range.
        """
        if value is None or value in self.also:
            return
        self._check_range(value)
        if self.rule is not None and not self.rule.holds(value):
            shown = f"[{', '.join(value)}]" if isinstance(value, tuple) else self.format(value)
            raise InvalidValue(self.name, shown, self.rule.reason.format(name=self.name))
        if self.type is OptionType.LIST and "" in value and (self.unique or self.one_of):
            raise ConfigError(f"Configuration '{self.name}' values must not be empty.")
        if self.one_of is None:
            return
        for item in value if self.type is OptionType.LIST else (value,):
            if item not in self.one_of:
                choices = ", ".join(self.one_of)
                raise InvalidValue(self.name, item, f"String must be one of: {choices}")

    def _check_range(self, value: Any) -> None:
        low, high = self.at_least, self.at_most
        too_low = low is not None and value < low
        too_high = high is not None and value > high
        if not too_low and not too_high:
            return
        if self.also:
            also = " or ".join(map(str, self.also))
            reason = f"Value must be between {low} and {high} or equal to {also}"
        elif too_low:
            reason = f"Value must be at least {low}"
        else:
            reason = f"Value must be no more than {high}"
        raise InvalidValue(self.name, value, reason)

    def format(self, value: Any) -> str | None:
        """
        *value* as Kafka prints it, ``None`` where there is none.
        """
        if value is None:
            return None
        if self.type is OptionType.BOOLEAN:
            return "true" if value else "false"
        if self.type is OptionType.LIST:
            return ",".join(value)
        return java_double(value) if self.type is OptionType.DOUBLE else str(value)

    @property
    def range_text(self) -> str:
        """
        The acceptable values, for people.
        """
        if self.one_of is not None:
            return ", ".join(self.one_of)
        if self.rule is not None:
            return self.rule.text
        if self.at_least is None and self.at_most is None:
            return ""
        low = "" if self.at_least is None else f"{self.at_least} or more"
        text = low if self.at_most is None else f"{self.at_least} to {self.at_most}"
        return " or ".join([text, *map(str, self.also)])


def java_double(value: float) -> str:
    """
    A double as Java prints it: ``0.5``, ``1.7976931348623157E308``.
    """
    text = repr(float(value))
    if "e" not in text:
        return text
    digits, exponent = text.split("e")
    return f"{digits if '.' in digits else digits + '.0'}E{int(exponent)}"


def _parse_boolean(option: Option, text: str) -> bool:
    lowered = text.lower()
    if lowered not in ("true", "false"):
        raise InvalidValue(option.name, text, "Expected value to be either true or false")
    return lowered == "true"


def _parse_integer(option: Option, text: str) -> int:
    limit = _LIMITS[option.type]
    try:
        value = int(text)
    except ValueError:
        value = limit
    # int() also takes what Java does not: blanks inside are gone already, "1_000" is left.
    if "_" in text or not -limit <= value < limit:
        raise InvalidValue(option.name, text, f"Not a number of type {option.type.name}")
    return value


def _parse_double(option: Option, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidValue(option.name, text, "Not a number of type DOUBLE") from None


def _parse_list(option: Option, text: str) -> tuple[str, ...]:
    items = [item.strip() for item in text.split(",")] if text else []
    # See Kafka's ConfigDef.ValidList.
    return tuple(dict.fromkeys(items) if option.unique or option.one_of else items)


def _parse_text(_option: Option, text: str) -> str:
    return text


_PARSERS: Mapping[OptionType, Callable[[Option, str], Any]] = {
    OptionType.BOOLEAN: _parse_boolean,
    OptionType.STRING: _parse_text,
    OptionType.INT: _parse_integer,
    OptionType.SHORT: _parse_integer,
    OptionType.LONG: _parse_integer,
    OptionType.DOUBLE: _parse_double,
    OptionType.LIST: _parse_list,
    OptionType.CLASS: _parse_text,
    OptionType.PASSWORD: _parse_text,
}


class _Declared(NamedTuple):
    """
    What ``option`` was told.
    """

    default: Any
    facts: Mapping[str, Any] | None  # None for what is declared without it


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
    rule: Rule | None = None,
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
        "rule": rule,
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

    A field that is declared with a plain value is no option, but goes with them.
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
    What every table of options can do.

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
        changed = (f"{k}={v!r}" for k, v in self._items() if v != self._fields[k].default)
        return f"{type(self).__name__}({', '.join(changed)})"

    def __setattr__(self, name: str, _value: Any) -> NoReturn:
        raise FrozenInstanceError(f"cannot assign to {name} of a {type(self).__name__}")

    def __delattr__(self, name: str) -> NoReturn:
        raise FrozenInstanceError(f"cannot delete {name} of a {type(self).__name__}")

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
