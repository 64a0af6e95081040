"""
The headers of requests and of responses.

============  ==========================================================================
request v1    api_key int16, api_version int16, correlation_id int32, client_id (classic,
              nullable string)
request v2    the same, then tagged fields
response v0   correlation_id int32
response v1   the same, then tagged fields
============  ==========================================================================

Flexible versions of an API have the later header. The response of ApiVersions is the exception: a
client that reads it does not know yet what the broker understands (KIP-511).
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

import struct
from functools import cache
from typing import Final

from barnabas.protocol.codec.primitives import Buffer, skip_tagged_fields
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.messages import REQUESTS

API_VERSIONS: Final = 18

_REQUEST = struct.Struct(">hhih")
_REQUEST_BYTES: Final = 10
_RESPONSE = struct.Struct(">i")
_NO_TAGGED_FIELDS = b"\0"
_NEVER = 2**15


class RequestHeader:
    """
    Who asks for what, and the number that the answer has to repeat.
    """

    __slots__ = ("api_key", "api_version", "client_id", "correlation_id")

    def __init__(
        self, api_key: int, api_version: int, correlation_id: int, client_id: str | None
    ) -> None:
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.client_id = client_id

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RequestHeader) and self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash(self._fields())

    def __repr__(self) -> str:
        return f"RequestHeader{self._fields()}"

    def _fields(self) -> tuple[int, int, int, str | None]:
        return self.api_key, self.api_version, self.correlation_id, self.client_id


def decode_request_header(frame: Buffer) -> tuple[RequestHeader, int]:
    """
    The header of a request, and the position of the body after it.

    The version may be unknown: ApiVersions answers those requests too.

    Raises:
        DecodeError: the frame is too short, or no API has the key.
    """
    api_key: int
    api_version: int
    length: int
    try:
        api_key, api_version, correlation_id, length = _REQUEST.unpack_from(frame)
        position = _REQUEST_BYTES
        client_id = None
        if length >= 0:
            end = position + length
            if end > len(frame):
                raise DecodeError(f"the client id has {length} bytes, more than are there")
            client_id = bytes(frame[position:end]).decode("utf-8", "replace")
            position = end
        if api_version >= _first_flexible(api_key):
            # No client sends tagged fields here so far.
            position = skip_tagged_fields(frame, position) if frame[position] else position + 1
    except (struct.error, IndexError) as error:
        raise DecodeError(f"request header: {error}") from error
    return RequestHeader(api_key, api_version, correlation_id, client_id), position


def encode_request_header(header: RequestHeader) -> bytes:
    """
    The header before the body of a request.

    Raises:
        DecodeError: no API has the key.
    """
    client_id = None if header.client_id is None else header.client_id.encode()
    length = -1 if client_id is None else len(client_id)
    fixed = _REQUEST.pack(header.api_key, header.api_version, header.correlation_id, length)
    flexible = header.api_version >= _first_flexible(header.api_key)
    return fixed + (client_id or b"") + (_NO_TAGGED_FIELDS if flexible else b"")


def response_header(api_key: int, api_version: int, correlation_id: int) -> bytes:
    """
    The header before the body of a response in *api_version*.

    Raises:
        DecodeError: no API has the key.
    """
    header = _RESPONSE.pack(correlation_id)
    return header + _NO_TAGGED_FIELDS if _has_tags(api_key, api_version) else header


def decode_response_header(api_key: int, api_version: int, frame: Buffer) -> tuple[int, int]:
    """
    The correlation id of a response, and the position of the body.

    Raises:
        DecodeError: the frame is too short, or no API has the key.
    """
    try:
        (correlation_id,) = _RESPONSE.unpack_from(frame)
        position = _RESPONSE.size
        if _has_tags(api_key, api_version):
            position = skip_tagged_fields(frame, position)
    except (struct.error, IndexError) as error:
        raise DecodeError(f"response header: {error}") from error
    return correlation_id, position


def _has_tags(api_key: int, api_version: int) -> bool:
    return api_key != API_VERSIONS and api_version >= _first_flexible(api_key)


@cache
def _first_flexible(api_key: int) -> int:
    if api_key not in REQUESTS:
        raise DecodeError(f"no API has the key {api_key}")
    flexible = REQUESTS[api_key].api.flexible
    return _NEVER if flexible is None else flexible
