"""
One option and its values: the type, the acceptable values, and the errors for others.

Values are read from text, checked and shown as Kafka's ``ConfigDef`` does, in its words, which is
what users search for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum, IntEnum
from typing import Any

from barnabas.protocol.structs import struct


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
    The end of a sentence with the name that is most like *name*; empty if none is.
    """
    import difflib  # noqa: PLC0415  # only for mistakes

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
        self.nearest = hint
        """The end of the sentence that names the nearest option; empty if none is near."""


class InvalidValue(ConfigError):
    """
    The value of an option has the wrong type or is out of its range.
    """

    def __init__(self, name: str, value: object, reason: str) -> None:
        super().__init__(f"Invalid value {value} for configuration {name}: {reason}")
        self.name, self.value = name, value


@struct
class Validator:
    """
    A condition for values that is neither a range nor a choice (Kafka's ConfigDef.Validator).
    """

    text: str
    """The acceptable values, for people."""
    holds: Callable[[Any], bool]
    reason: str
    """Why a value for which it does not hold is refused; ``{name}`` stands for the option."""


@struct(kw_only=True)
class Option:
    """
    One option: its name in Kafka, its values, its default, and its effect in one sentence.
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
    validator: Validator | None = None
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
        if self.validator is not None and not self.validator.holds(value):
            shown = f"[{', '.join(value)}]" if isinstance(value, tuple) else self.format(value)
            raise InvalidValue(self.name, shown, self.validator.reason.format(name=self.name))
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
        if self.validator is not None:
            return self.validator.text
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
    # int() also takes texts that Java does not: blanks inside are gone already, "1_000" is left.
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
