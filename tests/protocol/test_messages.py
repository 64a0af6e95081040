from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from barnabas.protocol.codec.codec import decode, decode_from, encode
from barnabas.protocol.codec.schema import Message
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.messages import REQUESTS, RESPONSES
from tests.support.messages import VERSIONS, messages, name_of

every_version = pytest.mark.parametrize(("cls", "version"), VERSIONS, ids=name_of)

# Every cut of a short message, and this many of a long one.
MOST_CUTS = 400


@every_version
@settings(max_examples=5)
@given(data=st.data())
def test_message_survives_a_round_trip_and_its_prefixes_are_refused(
    data: st.DataObject, cls: type[Message], version: int
) -> None:
    message = data.draw(messages(cls, version))
    encoded = encode(message, version)

    assert (message, len(encoded)) == decode_from(cls, version, encoded + b"more", 0)
    for size in range(0, len(encoded), 1 + len(encoded) // MOST_CUTS):
        with pytest.raises(DecodeError):
            decode(cls, version, encoded[:size])


@pytest.mark.prove
@every_version
@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_damaged_message_is_decoded_or_refused(
    data: st.DataObject, cls: type[Message], version: int
) -> None:
    damaged = bytearray(encode(data.draw(messages(cls, version)), version))
    for _ in range(data.draw(st.integers(1, 3))):
        if damaged:
            position = data.draw(st.integers(0, len(damaged) - 1))
            damaged[position] = data.draw(st.sampled_from([0, 1, 2, 127, 128, 255]))

    assert is_refused_or_understood(cls, version, damaged)


def is_refused_or_understood(cls: Any, version: int, data: bytes | bytearray) -> bool:
    """
    Whether *data* is one of the two; what is understood can be encoded again.
    """
    try:
        understood = encode(decode(cls, version, data), version)
    except DecodeError:
        return True
    return understood == encode(decode(cls, version, understood), version)


@pytest.mark.parametrize("key", REQUESTS)
def test_request_has_a_response_of_the_same_versions(key: int) -> None:
    request, response = REQUESTS[key], RESPONSES[key]

    assert request.api is response.api
    assert key == request.api.key
    assert request.__name__.removesuffix("Request") == response.__name__.removesuffix("Response")
    assert request.__module__ == response.__module__


def test_unknown_api_has_no_messages() -> None:
    assert 999 not in REQUESTS
    assert len(REQUESTS) == len(list(RESPONSES))
    with pytest.raises(KeyError):
        REQUESTS[999]
