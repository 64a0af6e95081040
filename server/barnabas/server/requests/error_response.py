"""
The response that says nothing but that the request failed.

Clients look for the code where the API has it: some have one for the whole response, others only
one for each topic, partition or group that was asked for. The first kind is made here for any API;
the second is made by the handler's module, which knows what in the request the items are.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from barnabas.protocol.apis import API_VERSIONS
from barnabas.protocol.codec.schema import (
    ZERO_UUID,
    Api,
    Array,
    Field,
    Fixed,
    Kind,
    Message,
    fields,
)
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from barnabas.protocol.structs import MISSING
from barnabas.server.requests.errors import CloseConnection
from barnabas.server.requests.registry import Registration
from barnabas.server.turns import Steps

_EMPTY: dict[Kind, str | bytes | UUID] = {
    Kind.STRING: "",
    Kind.BYTES: b"",
    Kind.RECORDS: b"",
    Kind.UUID: ZERO_UUID,
}


def error_response(
    registration: Registration, request: Any, version: int, code: ErrorCode, message: str | None
) -> Message | Steps[Message]:
    """
    The answer to a request that failed as a whole.

    Raises:
        CloseConnection: this version of the response has no place for an error, which leaves no
            other way to tell the client.
    """
    make = registration.error_response
    if make is not None:
        return make(request, version, code, message)
    members = {field.name: field for field in fields(registration.response)}
    if "error_code" not in members or not members["error_code"].is_in(version):
        name = registration.request.__name__
        raise CloseConnection(f"{name} v{version} failed ({code.name}) and cannot say so")
    values = {name: _empty(field) for name, field in members.items() if field.default is MISSING}
    values["error_code"] = code
    if message is not None and "error_message" in members:
        values["error_message"] = message
    return registration.response(**values)


def _empty(field: Field) -> Any:
    """
    A value that says nothing, for a field that has no default.
    """
    if field.nullable is not None:
        return None
    kind = field.type
    if isinstance(kind, Kind):
        return _EMPTY[kind]
    if isinstance(kind, Array):
        return []
    assert isinstance(kind, Fixed), f"{field.name}: a struct has no empty value"
    return 0


def unsupported_version() -> ApiVersionsResponse:
    """
    The answer, in version 0, to an ApiVersions request of a version that is not known.
    """
    return ApiVersionsResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[version_entry(API_VERSIONS)]
    )


def version_entry(api: Api) -> ApiVersion:
    """
    What ApiVersions says of *api*.
    """
    versions = api.advertised
    return ApiVersion(api_key=api.key, min_version=versions[0], max_version=versions[-1])
