from __future__ import annotations

import pytest

from barnabas.storage.config.option_values import (
    ConfigError,
    InvalidValue,
    UnknownOption,
    Update,
    java_double,
)
from barnabas.storage.config.options import (
    Double,
    Int,
    Long,
    Names,
    Options,
    Short,
    option,
    section,
    table,
)


@section
class Basics(Options):
    segment_bytes: Int = option(1024, "How large.", at_least=14, update=Update.CLUSTER_WIDE)
    level: Int = option(-1, "How hard.", at_least=1, at_most=9, also=(-1,))


@table
class Sample(Basics):
    retention_ms: Long | None = option(None, "How long.", at_least=-1)
    factor: Short = option(1, "How often.")
    ratio: Double = option(0.5, "How much.", at_least=0, at_most=1)
    cleanup_policy: Names = option(("delete",), "What.", one_of=("compact", "delete"))


def test_option_table_has_kafkas_names_in_order_of_declaration() -> None:
    names = ["segment.bytes", "level", "retention.ms", "factor", "ratio", "cleanup.policy"]

    assert names == list(Sample.options())


def test_values_are_parsed_by_type_and_missing_ones_get_the_default() -> None:
    sample = Sample.parse({"segment.bytes": " 14 ", "cleanup.policy": "compact, delete"})

    assert Sample(segment_bytes=14, cleanup_policy=("compact", "delete")) == sample


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("cleanup.policy", "", ()),
        ("cleanup.policy", "delete, compact, delete", ("delete", "compact")),
        ("level", "-1", -1),
    ],
    ids=["empty list", "duplicate list items", "allowed value outside the range"],
)
def test_unusual_value_is_accepted(name: str, text: str, value: object) -> None:
    assert value == getattr(Sample.parse({name: text}), name.replace(".", "_"))


@pytest.mark.parametrize(
    ("name", "text", "error", "sentence"),
    [
        (
            "cleanup.policy",
            "delete,,compact",
            ConfigError,
            "^Configuration 'cleanup.policy' values",
        ),
        ("segment.bytes", None, InvalidValue, "a value is required"),
        ("segment.byte", "1", UnknownOption, r"segment\.byte; did you mean segment\.bytes\?"),
        ("xyzzy", "1", ConfigError, r"^Unknown option xyzzy$"),
    ],
)
def test_option_that_cannot_be_set_is_refused(
    name: str, text: str | None, error: type[ConfigError], sentence: str
) -> None:
    with pytest.raises(error, match=sentence):
        Sample.parse({name: text})


def test_override_keeps_the_other_options() -> None:
    sample = Sample.parse({"ratio": "0.25"})

    assert Sample(ratio=0.25, retention_ms=5) == sample.overridden({"retention.ms": "5"})


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("segment.bytes", "13", "Value must be at least 14"),
        ("segment.bytes", "2147483648", "Not a number of type INT"),
        ("segment.bytes", "1_000", "Not a number of type INT"),
        ("segment.bytes", "", "Not a number of type INT"),
        ("factor", "32768", "Not a number of type SHORT"),
        ("level", "0", "Value must be between 1 and 9 or equal to -1"),
        ("level", "10", "Value must be between 1 and 9 or equal to -1"),
        ("ratio", "1.5", "Value must be no more than 1"),
        ("ratio", "half", "Not a number of type DOUBLE"),
        ("cleanup.policy", "shred", "String must be one of: compact, delete"),
    ],
)
def test_invalid_value_is_refused_with_its_option_and_the_valid_range(
    name: str, text: str, reason: str
) -> None:
    with pytest.raises(InvalidValue) as caught:
        Sample.parse({name: text})

    assert reason in str(caught.value)
    assert f"for configuration {name}" in str(caught.value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.5, "0.5"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (1e20, "1.0E20"),
        (1, "1.0"),
    ],
)
def test_doubles_are_printed_as_in_java(value: float, text: str) -> None:
    assert text == java_double(value)


def test_printed_values_can_be_parsed_again() -> None:
    options = Sample.options()

    assert "compact,delete" == options["cleanup.policy"].format(("compact", "delete"))
    assert "1024" == options["segment.bytes"].format(1024)
    assert None is options["retention.ms"].format(None)
