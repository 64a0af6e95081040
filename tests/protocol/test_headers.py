from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.errors import DecodeError
from barnabas.protocol.headers import (
    RequestHeader,
    decode_request_header,
    decode_response_header,
    encode_request_header,
    response_header,
)
from barnabas.protocol.messages import REQUESTS

API_VERSIONS, FETCH, HEARTBEAT = 18, 1, 12

REQUEST_HEADERS = [
    (RequestHeader(FETCH, 11, 7, "cli"), "0001 000b 00000007 0003 636c69"),
    (RequestHeader(FETCH, 12, 7, "cli"), "0001 000c 00000007 0003 636c69 00"),
    (RequestHeader(HEARTBEAT, 0, -1, None), "000c 0000 ffffffff ffff"),
    (RequestHeader(HEARTBEAT, 4, 2**31 - 1, ""), "000c 0004 7fffffff 0000 00"),
    (RequestHeader(API_VERSIONS, 99, 1, "ä"), "0012 0063 00000001 0002 c3a4 00"),
]


@pytest.mark.parametrize(("header", "encoded"), REQUEST_HEADERS)
def test_request_header_has_kafkas_bytes(header: RequestHeader, encoded: str) -> None:
    """
    The client id keeps its two-byte length in flexible versions.
    """
    data = bytes.fromhex(encoded)

    assert data == encode_request_header(header)
    assert (header, len(data)) == decode_request_header(data + b"body")


@pytest.mark.parametrize(
    ("api_key", "version", "encoded"),
    [
        (FETCH, 11, "00000007"),
        (FETCH, 12, "00000007 00"),
        (API_VERSIONS, 0, "00000007"),
        (API_VERSIONS, 3, "00000007"),
        (API_VERSIONS, 99, "00000007"),
    ],
)
def test_response_header_has_kafkas_bytes(api_key: int, version: int, encoded: str) -> None:
    """
    ApiVersions keeps response header version 0 in all versions.
    """
    data = bytes.fromhex(encoded)

    assert data == response_header(api_key, version, 7)
    assert (7, len(data)) == decode_response_header(api_key, version, data + b"body")


def test_tagged_fields_of_a_header_are_skipped() -> None:
    """
    None are known; later clients may send some.
    """
    tags = bytes.fromhex("02 0001aa 8201 02bbbb")
    request = bytes.fromhex("0001 000c 00000007 0001 63") + tags
    response = bytes.fromhex("00000007") + tags

    assert (RequestHeader(FETCH, 12, 7, "c"), len(request)) == decode_request_header(request)
    assert (7, len(response)) == decode_response_header(FETCH, 12, response)


@given(
    key=st.sampled_from(sorted(REQUESTS)),
    version=st.integers(0, 30),
    correlation_id=st.integers(-(2**31), 2**31 - 1),
    client_id=st.none() | st.text(max_size=5),
)
def test_request_header_survives_a_round_trip_and_its_prefixes_are_refused(
    key: int, version: int, correlation_id: int, client_id: str | None
) -> None:
    header = RequestHeader(key, version, correlation_id, client_id)
    data = encode_request_header(header)

    assert (header, len(data)) == decode_request_header(memoryview(data))
    for size in range(len(data)):
        with pytest.raises(DecodeError):
            decode_request_header(data[:size])


@pytest.mark.parametrize("size", range(5))
def test_truncated_response_header_is_refused(size: int) -> None:
    with pytest.raises(DecodeError):
        decode_response_header(FETCH, 12, bytes(5)[:size])


def test_invalid_utf_8_in_a_request_header_is_replaced() -> None:
    header, _ = decode_request_header(bytes.fromhex("0001 000c 00000007 0003 61ff62 00"))

    assert "a\ufffdb" == header.client_id


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ("0001 000c 00000007 7fff 63 00", "client id has 32767 bytes"),
        ("0fff 0000 00000007 ffff", "no API has the key 4095"),
        ("ffff 0000 00000007 ffff", "no API has the key -1"),
        ("0001 000c 00000007 ffff 01 00 7f", "tagged field 0 ends after the data"),
    ],
)
def test_malformed_request_header_is_refused_with_the_reason(data: str, reason: str) -> None:
    with pytest.raises(DecodeError, match=reason):
        decode_request_header(bytes.fromhex(data))
