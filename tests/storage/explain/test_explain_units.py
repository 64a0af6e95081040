from __future__ import annotations

import pytest

from barnabas.storage.explain.units import duration, moment, parse_moment, rounded_size, size
from barnabas.storage.units import counted


@pytest.mark.parametrize(
    ("ms", "expected"),
    [
        (0, "0 ms"),
        (999, "999 ms"),
        (1000, "1 second"),
        (1001, "1 second 1 ms"),
        (600_000, "10 minutes"),
        (3_600_000 + 1, "1 hour"),
        (86_400_000 * 7, "7 days"),
        (86_400_000 + 7_200_000 + 60_000, "1 day 2 hours"),
        (-1500, "-1 second 500 ms"),
        (2**63 - 1, "forever"),
    ],
)
def test_duration_is_printed_in_its_two_largest_units(ms: int, expected: str) -> None:
    assert expected == duration(ms)


@pytest.mark.parametrize(
    ("number", "noun", "expected"),
    [
        (1, "byte", "1 byte"),
        (0, "byte", "0 bytes"),
        (1500, "batch", "1,500 batches"),
        (2, "entry", "2 entries"),
        (7, "day", "7 days"),
    ],
)
def test_counted_nouns_have_their_plural(number: int, noun: str, expected: str) -> None:
    assert expected == counted(number, noun)


@pytest.mark.parametrize(
    ("number", "rounded", "exact"),
    [
        (1, "1 byte", "1 byte"),
        (16_384, "16 KiB", "16,384 bytes"),
        (1_572_864, "1.5 MiB", "1.5 MiB (1,572,864 bytes)"),
        (2**30, "1 GiB", "1 GiB (1,073,741,824 bytes)"),
    ],
)
def test_sizes_are_printed_rounded_and_exact(number: int, rounded: str, exact: str) -> None:
    assert (rounded, exact) == (rounded_size(number), size(number))


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (1_700_000_000_000, "2023-11-14T22:13:20Z"),
        (1_700_000_000_001, "2023-11-14T22:13:20.001Z"),
        (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
    ],
)
def test_time_is_printed_and_parsed_in_utc(ms: int, text: str) -> None:
    assert text == moment(ms)
    assert ms == parse_moment(text)
    assert ms == parse_moment(str(ms))


@pytest.mark.parametrize("ms", [-1, 253_402_300_800_000, 2**63 - 1])
def test_time_beyond_the_range_of_datetime_is_printed_as_a_number(ms: int) -> None:
    assert f"{ms} ms" == moment(ms)


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("2023-11-14", 1_699_920_000_000),
        ("2023-11-14T23:13:20+01:00", 1_700_000_000_000),
        ("2023-11-14 22:13:20", 1_700_000_000_000),
    ],
)
def test_time_is_parsed_in_several_notations(text: str, ms: int) -> None:
    assert ms == parse_moment(text)


@pytest.mark.parametrize("text", ["", "yesterday", "12:00", "2023-13-01", "1.5"])
def test_invalid_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a time: write 2026-01-31T12:00:00Z"):
        parse_moment(text)
