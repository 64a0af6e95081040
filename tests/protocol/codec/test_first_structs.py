"""
What is read and written field by field is what the functions made for it read and write.
"""

from __future__ import annotations

import linecache
import struct
import sys
from collections.abc import Generator
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from barnabas.protocol.codec.codec import decode, encode
from barnabas.protocol.codec.decoder import compile_decoder, compile_step_decoder
from barnabas.protocol.codec.encoder import compile_encoder, compile_step_encoder
from barnabas.protocol.codec.first_structs import (
    ALLOWED,
    Allowance,
    Refused,
    read_struct,
    write_struct,
)
from barnabas.protocol.codec.schema import Api, Message, int32, message
from barnabas.protocol.errors import DecodeError
from tests.support.messages import VERSIONS, messages, name_of

FUNCTION_REFUSES = (DecodeError, struct.error, IndexError)


@message
class Gate:
    """
    A part of a wall.
    """

    width: int32


@message
class Wall:
    """
    Has as many gates as one likes.
    """

    api: ClassVar[Api] = Api(1, versions=range(10))

    gates: list[Gate]


def plenty() -> Allowance:
    """
    More than any message here needs.
    """
    left = Allowance()
    left.left = 10**6
    return left


def has_function(version: int, direction: str) -> bool:
    """
    Whether a function was made for walls.
    """
    return linecache.getline(f"<Wall v{version} {direction}>", 1) != ""


@pytest.mark.parametrize(("cls", "version"), VERSIONS, ids=name_of)
@settings(max_examples=6, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_all_ways_write_and_read_the_same(
    cls: type[Message], version: int, data: st.DataObject
) -> None:
    """
    The bytes of any message, and what is left of them after an accident; what one way refuses the
    other ones refuse too: field by field, by a function, and by one that goes in steps.
    """
    flexible = cls.api.is_flexible(version)
    value = data.draw(messages(cls, version))
    parts = compile_encoder(cls, version, flexible=flexible)(value, sys.maxsize)

    assert parts == write_struct(value, version, flexible=flexible, left=plenty())

    in_steps = ended(compile_step_encoder(cls, version, flexible=flexible)(value, sys.maxsize))
    assert b"".join(parts) == b"".join(in_steps)

    encoded = bytearray(b"".join(parts))
    decoder = compile_decoder(cls, version, flexible=flexible)
    step_decoder = compile_step_decoder(cls, version, flexible=flexible)
    for torn in (encoded, *(data.draw(damaged(encoded)) for _ in range(4))):
        view = memoryview(torn)
        try:
            expected: Any = decoder(view, 0, sys.maxsize)
        except FUNCTION_REFUSES as error:
            with pytest.raises(type(error)):
                ended(step_decoder(view, 0, sys.maxsize))
            with pytest.raises((Refused, *FUNCTION_REFUSES)):
                read_struct(cls, version, view, 0, flexible=flexible, left=plenty())
        else:
            assert repr(expected) == repr(ended(step_decoder(view, 0, sys.maxsize)))
            assert repr(expected) == repr(
                read_struct(cls, version, view, 0, flexible=flexible, left=plenty())
            )


def ended(steps: Generator[None, None, Any]) -> Any:
    """
    What *steps* return in the end.
    """
    try:
        while True:
            next(steps)
    except StopIteration as end:
        return end.value


@st.composite
def damaged(draw: st.DrawFn, data: bytearray) -> bytearray:
    """
    *data*, cut somewhere, or with another byte somewhere.
    """
    at = draw(st.integers(0, max(0, len(data) - 1)))
    if not data or draw(st.booleans()):
        return data[:at]
    return data[:at] + draw(st.binary(min_size=1, max_size=1)) + data[at + 1 :]


def test_a_function_is_made_when_there_are_more_than_a_few() -> None:
    """
    It shows itself to debuggers under the name of the message, its version and the direction.
    """
    wall = Wall(gates=[])
    for _ in range(ALLOWED):
        assert wall == decode(Wall, 0, encode(wall, 0))
    assert not has_function(0, "encode")
    assert not has_function(0, "decode")

    assert wall == decode(Wall, 0, encode(wall, 0))
    assert "def encode(message, left):\n" == linecache.getline("<Wall v0 encode>", 1)
    assert "def decode(data, p, left):\n" == linecache.getline("<Wall v0 decode>", 1)


def test_one_large_message_is_enough() -> None:
    """
    Which is given up where the allowance ends, and done by the function from its start.
    """
    wall = Wall(gates=[Gate(width=number) for number in range(ALLOWED)])

    assert wall == decode(Wall, 1, encode(wall, 1))
    assert has_function(1, "encode")
    assert has_function(1, "decode")


def test_what_is_wrong_is_said_by_the_function() -> None:
    """
    In the words in which it says it of the thousandth message.
    """
    with pytest.raises(DecodeError, match=r"Wall version 2: Wall.gates has 9 elements, which do"):
        decode(Wall, 2, bytes.fromhex("00000009 00"))
    assert has_function(2, "decode")
