"""
Error codes and their exceptions.
"""

import re

import pytest

from barnabas.protocol.errors import (
    ErrorCode,
    KafkaError,
    OffsetOutOfRange,
    UnknownServerError,
    error_for,
)

CODES = [code for code in ErrorCode if code is not ErrorCode.NONE]


def test_the_codes_are_those_of_kafka_without_a_gap() -> None:
    """
    Apache Kafka 4.3 knows the codes -1 to 133.
    """
    assert list(range(-1, 134)) == sorted(ErrorCode)


@pytest.mark.parametrize("code", CODES, ids=lambda code: code.name)
def test_a_code_has_an_exception_of_its_name(code: ErrorCode) -> None:
    """
    The exception is named like the code, carries it, and speaks for it.
    """
    error = error_for(code)

    assert code is error.code
    assert code.name == re.sub(r"(?<!^)(?=[A-Z])", "_", error.__name__).upper()
    assert code.sentence == str(error())
    assert "too bad" == str(error("too bad"))


@pytest.mark.parametrize("code", [-2, 134, 32767])
def test_a_code_that_nobody_knows_is_an_unknown_server_error(code: int) -> None:
    """
    Clients do the same with codes of later versions.
    """
    assert UnknownServerError is error_for(code)


def test_no_error_has_no_exception() -> None:
    """
    Code 0 is asked for by mistake only.
    """
    with pytest.raises(ValueError, match="0 is not an error"):
        error_for(0)


def test_a_second_exception_for_a_code_is_refused() -> None:
    """
    Otherwise it would depend on the order of imports what ``error_for`` answers.
    """
    with pytest.raises(TypeError, match="OFFSET_OUT_OF_RANGE has an exception already"):
        type("Second", (KafkaError,), {}, code=1)

    assert OffsetOutOfRange is error_for(1)


def test_an_exception_that_knows_more_keeps_the_code() -> None:
    """
    Such a class is caught by the one that it was made from, and is not what ``error_for`` finds.
    """

    class OffsetBeyondEnd(OffsetOutOfRange):
        """
        Knows the offset.
        """

    assert ErrorCode.OFFSET_OUT_OF_RANGE is OffsetBeyondEnd.code
    assert OffsetOutOfRange is error_for(1)
