"""
The response to a request that failed as a whole (Kafka's ``AbstractRequest.getErrorResponse``).

The schemas say what it looks like. A response whose version has an error code for the whole carries
it there. All others carry it in each item: the first array of the request is mirrored in the last
array of structs of the response, down to the structs that have an error code, and the fields that
identify an item are copied::

    topics: name                                    responses: name
            partitions: partition_index, offset ->             partitions: partition_index
            partitions: partition_index, offset                            error_code

``_RULES`` has the APIs for which Kafka does something else. An item that a request names twice is
answered twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from itertools import chain
from types import NoneType
from typing import Any, Final
from uuid import UUID

from barnabas.coordination.security.principal import ANONYMOUS, USER
from barnabas.coordination.steps import await_each
from barnabas.protocol import apis
from barnabas.protocol.codec.schema import (
    ZERO_UUID,
    Api,
    Array,
    Field,
    Fixed,
    Kind,
    Message,
    Struct,
    fields,
)
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from barnabas.protocol.structs import MISSING, NamedTuple
from barnabas.server.requests.errors import CloseConnection
from barnabas.server.requests.registry import Registration

_ERROR_CODES: Final = ("error_code", "partition_error_code")
_IDENTITIES: Final = frozenset(
    (
        *("name", "topic", "topic_name", "topic_id"),
        *("index", "partition", "partition_index", "partition_id"),
        *("group_id", "key", "producer_id", "transactional_id"),
        *("entity", "resource_name", "resource_type", "user"),
    )
)
_EMPTY: Final[dict[Kind, str | bytes | UUID]] = {
    Kind.STRING: "",
    Kind.BYTES: b"",
    Kind.RECORDS: b"",
    Kind.UUID: ZERO_UUID,
}


def _own_sentence(code: ErrorCode, message: str | None) -> str | None:
    """
    The message of an error that was foreseen and says more than its code (Kafka's ``ApiError``).
    """
    return None if message == code.sentence or code < 0 else message


def _any_sentence(code: ErrorCode, message: str | None) -> str:
    return message or code.sentence


def _no_sentence(_code: ErrorCode, _message: str | None) -> None:
    return None


def _no_permission(code: ErrorCode, message: str | None) -> str | None:
    """
    Only Kafka's controller says which permission is lacking, and these APIs are the broker's.
    """
    is_refusal = code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    return None if is_refusal else _own_sentence(code, message)


class _Rule(NamedTuple):
    """
    How Kafka answers a failed request of an API.

    Args:
        in_items_until: the last version that carries the code in the items although it also has one
            for the whole.
        items: the items of the request, where they are not its first array.
        message: what the ``error_message`` says.
        values: of fields that are neither at their default nor empty.
    """

    in_items_until: int = -1
    items: Callable[[Any], Iterable[Any]] | None = None
    message: Callable[[ErrorCode, str | None], str | None] = _own_sentence
    values: Mapping[str, Any] = {}


_NOWHERE: Final = {"node_id": -1, "port": -1}
_NOT_READ: Final = {"high_watermark": -1, "aborted_transactions": [], "records": b""}

_NO_TOKEN: Final = {
    **{"principal_type": USER, "principal_name": ANONYMOUS.name},
    **{"token_requester_principal_type": USER, "token_requester_principal_name": ANONYMOUS.name},
    **{"issue_timestamp_ms": -1, "expiry_timestamp_ms": -1, "max_timestamp_ms": -1},
}

_RULES: Final = {
    api.key: rule
    for api, rule in (
        (apis.PRODUCE, _Rule(values={"base_offset": -1})),
        (apis.FETCH, _Rule(in_items_until=12, values=_NOT_READ)),
        (apis.METADATA, _Rule(in_items_until=13, values={"name": ""})),
        (apis.OFFSET_FETCH, _Rule(values={"committed_offset": -1, "metadata": ""})),
        (apis.FIND_COORDINATOR, _Rule(message=_any_sentence, values=_NOWHERE)),
        (apis.DESCRIBE_GROUPS, _Rule(message=_no_sentence)),
        (apis.CREATE_TOPICS, _Rule(values={"configs": []})),
        (apis.DELETE_TOPICS, _Rule(message=_no_sentence)),
        (apis.DELETE_RECORDS, _Rule(values={"low_watermark": -1})),
        (apis.INIT_PRODUCER_ID, _Rule(values={"producer_epoch": -1})),
        (apis.DESCRIBE_CONFIGS, _Rule(message=_any_sentence)),
        (
            apis.ALTER_REPLICA_LOG_DIRS,
            _Rule(items=lambda request: chain.from_iterable(dir.topics for dir in request.dirs)),
        ),
        # Kafka answers v1 and v2 with no directory, which hides the error.
        (apis.DESCRIBE_LOG_DIRS, _Rule(items=lambda _: (None,))),
        (apis.CREATE_DELEGATION_TOKEN, _Rule(values=_NO_TOKEN)),
        (apis.ELECT_LEADERS, _Rule(in_items_until=2)),
        (apis.ALTER_PARTITION_REASSIGNMENTS, _Rule(in_items_until=1)),
        (apis.ALTER_CLIENT_QUOTAS, _Rule(message=_any_sentence)),
        (
            apis.ALTER_USER_SCRAM_CREDENTIALS,
            _Rule(items=lambda it: sorted({each.name for each in it.deletions + it.upsertions})),
        ),
        (apis.LIST_PARTITION_REASSIGNMENTS, _Rule(in_items_until=0)),
        # Kafka answers for each user without saying which.
        (
            apis.DESCRIBE_USER_SCRAM_CREDENTIALS,
            _Rule(
                in_items_until=0,
                items=lambda request: [None] * len(request.users or ()),
                message=_no_permission,
            ),
        ),
        (apis.DESCRIBE_CLIENT_QUOTAS, _Rule(message=_no_permission)),
        (apis.DESCRIBE_QUORUM, _Rule(message=_any_sentence)),
        (apis.DESCRIBE_PRODUCERS, _Rule(message=_no_sentence)),
        (apis.UNREGISTER_BROKER, _Rule(message=_any_sentence)),
        (apis.SHARE_FETCH, _Rule(message=_no_sentence)),
        (apis.SHARE_ACKNOWLEDGE, _Rule(message=_no_sentence)),
        (apis.INITIALIZE_SHARE_GROUP_STATE, _Rule(message=_no_sentence)),
        (apis.READ_SHARE_GROUP_STATE, _Rule(message=_any_sentence)),
        (apis.WRITE_SHARE_GROUP_STATE, _Rule(message=_any_sentence)),
        (apis.DELETE_SHARE_GROUP_STATE, _Rule(message=_no_sentence)),
        (apis.READ_SHARE_GROUP_STATE_SUMMARY, _Rule(message=_any_sentence)),
        (apis.DESCRIBE_SHARE_GROUP_OFFSETS, _Rule(message=_any_sentence)),
    )
}
_AS_MOST: Final = _Rule()


async def error_response(
    registration: Registration, request: Any, version: int, code: ErrorCode, message: str | None
) -> Message:
    """
    The response to a request that failed as a whole, in steps: one for each item.

    Raises:
        CloseConnection: this version of the response has no place for an error, or the producer
            wants no responses: there is no other way to tell the client.
    """
    key = registration.key
    if key == apis.PRODUCE.key and request.acks == 0:
        raise CloseConnection(f"Produce with acks=0 failed: {code.name}")
    rule = _RULES.get(key, _AS_MOST)
    mirror = _Mirror(rule.values, version, code, rule.message(code, message))
    response = registration.response
    values = mirror.constants(response)
    if key == apis.FETCH.key:
        values["session_id"] = request.session_id
    has_code = any(field.name == "error_code" for field in _present(response, version))
    if not has_code or version <= rule.in_items_until:
        array = _array_of_structs(response, version)
        if array is None:
            name = registration.request.__name__
            raise CloseConnection(f"{name} v{version} failed ({code.name}) and cannot say so")
        items = _items(request, version) if rule.items is None else rule.items(request)
        values[array.name] = await mirror.each(array, items)
    return response(**values)


class _Mirror:
    """
    Makes the structs of a response that carry an error.
    """

    def __init__(
        self, values: Mapping[str, Any], version: int, code: ErrorCode, message: str | None
    ) -> None:
        self._values: dict[str, Any] = {"error_message": message, **values}
        self._values.update(dict.fromkeys(_ERROR_CODES, code))
        self._version = version

    def constants(self, cls: type) -> dict[str, Any]:
        """
        The values of the fields of *cls* that do not depend on an item.
        """
        return {
            field.name: self._values.get(field.name, _empty(field, self._version))
            for field in fields(cls)
            if field.name in self._values or field.default is MISSING
        }

    async def each(self, array: Field, items: Iterable[Any]) -> list[Any]:
        """
        The elements of *array* for the *items* of the request.
        """
        cls = _element(array)
        constants = self.constants(cls)
        has_code = not constants.keys().isdisjoint(_ERROR_CODES)
        nested = None if has_code else _array_of_structs(cls, self._version)

        async def mirror(item: Any) -> Any:
            values = constants | _identity(cls, item)
            if nested is not None:
                items = _items(item, self._version)
                values[nested.name] = await self.each(nested, items)
            return cls(**values)

        return await await_each(mirror, items)


def _identity(cls: type, item: Any) -> dict[str, Any]:
    """
    The fields of *cls* that say which *item* of the request it is about.
    """
    return {
        target: value
        for target, source in _sources(cls, item.__class__)
        if (value := getattr(item, source) if source else item) is not None
    }


@cache
def _sources(cls: type, item: type) -> tuple[tuple[str, str], ...]:
    """
    The identifying fields of *cls*, each with the field of *item* that has its value.

    The first may have another name there, but is the first there as well; where an item is no
    struct, it is the value itself.
    """
    targets = [field.name for field in fields(cls) if field.name in _IDENTITIES]
    if issubclass(item, int | str | NoneType):
        return tuple((target, "") for target in targets[:1])
    names = [field.name for field in fields(item)]
    same = [(target, target) for target in targets if target in names]
    return tuple(same or [(target, names[0]) for target in targets])


def _items(request: Any, version: int) -> Iterable[Any]:
    """
    The elements of the first array of a request, or of a struct in it.
    """
    arrays = (field for field in _present(type(request), version) if isinstance(field.type, Array))
    return getattr(request, next(arrays).name) or ()


def _array_of_structs(cls: type, version: int) -> Field | None:
    """
    The last one of a response, or of a struct in it, that is not a tagged field.
    """
    found = None
    for field in _present(cls, version):
        if isinstance(field.type, Array) and isinstance(field.type.element, Struct):
            found = field
    return found


def _element(array: Field) -> type:
    assert isinstance(array.type, Array)
    assert isinstance(array.type.element, Struct)
    return array.type.element.cls


def _present(cls: type, version: int) -> list[Field]:
    return [field for field in fields(cls) if field.is_in(version) and field.tag is None]


def _empty(field: Field, version: int) -> Any:
    """
    A value that says nothing, for a field that has no default.
    """
    if field.is_nullable_in(version):
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
    The response, in version 0, to an ApiVersions request of an unknown version.
    """
    return ApiVersionsResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[version_entry(apis.API_VERSIONS)]
    )


def version_entry(api: Api) -> ApiVersion:
    """
    What ApiVersions says of *api*.
    """
    versions = api.advertised
    return ApiVersion(api_key=api.key, min_version=versions[0], max_version=versions[-1])
