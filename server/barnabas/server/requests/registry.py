"""
Which APIs are served, and by which handlers.

``SERVED`` is what makes an API exist: ``ApiVersions`` answers from it, and a key that is not in it
closes the connection. It says which module of ``handlers`` has the handler, and that module is
imported by the first request: a broker is up sooner, and most of them never hear of most APIs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from barnabas.protocol import apis
from barnabas.protocol.codec.schema import Message
from barnabas.protocol.messages import RESPONSES
from barnabas.protocol.structs import struct

if TYPE_CHECKING:
    from barnabas.server.requests.authorization import Needs

Req = TypeVar("Req", bound=Message)
Handler: TypeAlias = Callable[[Any, Any], Any]
"""
A coroutine function that takes a message and its ``RequestContext``, and returns a response or
None. That of Produce is plain, and returns a coroutine where it has to wait.
"""
H = TypeVar("H", bound=Handler)


@struct(kw_only=True)
class Registration:
    """
    One API this broker serves.
    """

    key: int
    request: type[Message]
    response: type[Message]
    handler: Handler
    needs: Needs
    versions: range  # what is answered
    advertised: range  # what ApiVersions lists, which may be more: see Produce
    forget: Callable[[Any], None] | None = None

    @property
    def name(self) -> str:
        """
        The name of the API.
        """
        return self.request.__name__.removesuffix("Request")


_NAMED_OTHERWISE: Final = {
    api.key: module
    for module, those in (
        ("acls", (apis.DESCRIBE_ACLS, apis.CREATE_ACLS, apis.DELETE_ACLS)),
        (
            "delegation_tokens",
            (
                apis.CREATE_DELEGATION_TOKEN,
                apis.RENEW_DELEGATION_TOKEN,
                apis.EXPIRE_DELEGATION_TOKEN,
                apis.DESCRIBE_DELEGATION_TOKEN,
            ),
        ),
        ("telemetry", (apis.GET_TELEMETRY_SUBSCRIPTIONS, apis.PUSH_TELEMETRY)),
        (
            "share_group_state",
            (
                apis.INITIALIZE_SHARE_GROUP_STATE,
                apis.READ_SHARE_GROUP_STATE,
                apis.WRITE_SHARE_GROUP_STATE,
                apis.DELETE_SHARE_GROUP_STATE,
                apis.READ_SHARE_GROUP_STATE_SUMMARY,
            ),
        ),
    )
    for api in those
}

SERVED: Final = {key: _NAMED_OTHERWISE.get(key, name) for key, name in apis.MODULES.items()}
"""
The modules of the handlers by API key. A handler is in the module of its API's name, but for a few.
"""

HANDLERS_PACKAGE: Final = "barnabas.server.handlers"

_registered: Final[dict[int, Registration]] = {}


class Handlers(Mapping[int, Registration]):
    """
    What is served, by API key; a module is imported when its API is first asked for.
    """

    def __getitem__(self, key: int) -> Registration:
        module = SERVED[key]
        if key not in _registered:
            import_module(f"{HANDLERS_PACKAGE}.{module}")
        return _registered[key]

    def __iter__(self) -> Iterator[int]:
        return iter(SERVED)

    def __len__(self) -> int:
        return len(SERVED)

    def __contains__(self, key: object) -> bool:
        return key in SERVED


HANDLERS: Final = Handlers()


def handles(
    request: type[Req],
    *,
    needs: Needs,
    forget: Callable[[Req], None] | None = None,
) -> Callable[[H], H]:
    """
    Register the handler of an API.

    Args:
        needs: what a client has to be allowed.
        forget: lets go of the large fields of a request whose effects are done while its answer
            waits, so that they do not keep the frame.
    """

    def register(handler: H) -> H:
        key = request.api.key
        assert key in SERVED, f"{request.__name__} is not served"
        assert key not in _registered, f"two handlers for {request.__name__}"
        _registered[key] = Registration(
            key=key,
            request=request,
            response=RESPONSES[key],
            handler=handler,
            needs=needs,
            versions=request.api.versions,
            advertised=request.api.advertised,
            forget=forget,
        )
        return handler

    return register
