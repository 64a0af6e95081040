import re

import pytest

from barnabas.protocol.codec.primitives import MAX_STRING_BYTES
from barnabas.protocol.errors import (
    MOST_OF_A_SENTENCE,
    ErrorCode,
    KafkaError,
    OffsetOutOfRange,
    UnknownServerError,
    error_for,
    joined,
)

CODES = [code for code in ErrorCode if code is not ErrorCode.NONE]


def test_error_codes_are_those_of_kafka_without_gaps() -> None:
    assert list(range(-1, 134)) == sorted(ErrorCode)


@pytest.mark.parametrize("code", CODES, ids=lambda code: code.name)
def test_every_error_code_has_an_exception_of_its_name(code: ErrorCode) -> None:
    error = error_for(code)

    assert code is error.code
    assert code.name == re.sub(r"(?<!^)(?=[A-Z])", "_", error.__name__).upper()
    assert code.sentence == str(error())
    assert "too bad" == str(error("too bad"))


@pytest.mark.parametrize("code", [-2, 134, 32767])
def test_unknown_error_code_counts_as_unknown_server_error(code: int) -> None:
    assert UnknownServerError is error_for(code)


def test_error_code_none_has_no_exception() -> None:
    with pytest.raises(ValueError, match="0 is not an error"):
        error_for(0)


def test_second_exception_for_an_error_code_is_refused() -> None:
    """
    Otherwise the result of ``error_for`` would depend on the order of imports.
    """
    with pytest.raises(TypeError, match="OFFSET_OUT_OF_RANGE has an exception already"):
        type("Second", (KafkaError,), {}, code=1)

    assert OffsetOutOfRange is error_for(1)


def test_exception_subclass_keeps_the_error_code() -> None:
    """
    It is caught as its base class, and ``error_for`` does not return it.
    """

    class OffsetBeyondEnd(OffsetOutOfRange):
        """
        Knows the offset.
        """

    assert ErrorCode.OFFSET_OUT_OF_RANGE is OffsetBeyondEnd.code
    assert OffsetOutOfRange is error_for(1)


def test_sentence_that_quotes_a_long_text_fits_into_a_string() -> None:
    error = UnknownServerError("The name is bad: " + "\U0001f600" * MAX_STRING_BYTES)

    assert str(error).startswith("The name is bad: \U0001f600")
    assert len(str(error).encode()) <= MAX_STRING_BYTES


@pytest.mark.parametrize("count", [0, 1, 3, MOST_OF_A_SENTENCE])
def test_texts_of_a_sentence_are_joined_up_to_its_length(count: int) -> None:
    texts = [f"text-{number}" for number in range(count)]
    limited = joined(texts, ", ")

    assert str(KafkaError(", ".join(texts))) == str(KafkaError(limited))
    assert len(limited) <= MOST_OF_A_SENTENCE + len("text-0000, ") + 1


def test_long_text_of_a_sentence_is_not_copied() -> None:
    assert len(joined(["x" * 1_000_000] * 3, ",")) == MOST_OF_A_SENTENCE + 1
