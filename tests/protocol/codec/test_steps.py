from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from barnabas.protocol.codec.codec import (
    decode_from,
    decode_in_steps,
    encode_in_steps,
    encode_parts,
)
from barnabas.protocol.codec.schema import Message
from barnabas.protocol.errors import DecodeError
from tests.support.messages import VERSIONS, ended, messages, name_of


@pytest.mark.prove
@pytest.mark.parametrize(("cls", "version"), VERSIONS, ids=name_of)
@settings(max_examples=6, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_stepwise_codec_agrees_with_the_plain_codec(
    cls: type[Message], version: int, data: st.DataObject
) -> None:
    value = data.draw(messages(cls, version))

    encoded = bytearray(b"".join(encode_parts(value, version)))

    assert encoded == b"".join(ended(encode_in_steps(value, version)))
    for torn in (encoded, *(data.draw(damaged(encoded)) for _ in range(4))):
        view = memoryview(torn)
        try:
            expected: Any = decode_from(cls, version, view, 0)
        except DecodeError as error:
            with pytest.raises(DecodeError, match=f"^{re.escape(str(error))}$"):
                ended(decode_in_steps(cls, version, view, 0))
        else:
            assert repr(expected) == repr(ended(decode_in_steps(cls, version, view, 0)))


@st.composite
def damaged(draw: st.DrawFn, data: bytearray) -> bytearray:
    """
    *data*, cut somewhere, or with another byte somewhere.
    """
    at = draw(st.integers(0, max(0, len(data) - 1)))
    if not data or draw(st.booleans()):
        return data[:at]
    return data[:at] + draw(st.binary(min_size=1, max_size=1)) + data[at + 1 :]
