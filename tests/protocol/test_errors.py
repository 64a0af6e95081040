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


def test_error_codes_are_those_of_kafka_without_gaps() -> None:
    """
    Apache Kafka 4.3 has the codes -1 to 133.
    """
    assert list(range(-1, 134)) == sorted(ErrorCode)


@pytest.mark.parametrize("code", CODES, ids=lambda code: code.name)
def test_every_error_code_has_an_exception_of_its_name(code: ErrorCode) -> None:
    """
    It carries the code and Kafka's message.
    """
    error = error_for(code)

    assert code is error.code
    assert code.name == re.sub(r"(?<!^)(?=[A-Z])", "_", error.__name__).upper()
    assert code.sentence == str(error())
    assert "too bad" == str(error("too bad"))


@pytest.mark.parametrize("code", [-2, 134, 32767])
def test_unknown_error_code_counts_as_unknown_server_error(code: int) -> None:
    """
    Clients treat codes of later versions like this.
    """
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
