"""
Quotas of clients, applied to requests (Kafka ``RequestHandlerHelper``; KIP-13, 124, 219, 599).

While there is any quota, each request has a meter. When its answer is made, what it has used is
counted::

    bytes of a Produce           the frame of the request, also with acks=0
    bytes of a Fetch             the answer; one that is too large is replaced by an empty one
    time                         what the request took of the event loop, but for sending the answer
    partitions                   those that were created or deleted

The answer says how long to wait, it is sent at once, and the connection is not read from for so
long, whatever its client does about it.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from barnabas.coordination.steps import InSteps
from barnabas.protocol import apis
from barnabas.protocol.codec.schema import Message
from barnabas.protocol.structs import is_frozen, replace
from barnabas.server.requests.route import written_at_once

if TYPE_CHECKING:
    from barnabas.coordination.topics.creation import Charge
    from barnabas.protocol.headers import RequestHeader
    from barnabas.server.requests.client import Client
    from barnabas.server.requests.request_quotas import RequestQuotas
    from barnabas.server.requests.route import Route
    from barnabas.server.security.quotas.quotas import MutationQuota

PRODUCE: Final = apis.PRODUCE.key
EXEMPT: Final = frozenset(
    api.key for api in (apis.SASL_AUTHENTICATE, apis.SASL_HANDSHAKE, apis.WRITE_TXN_MARKERS)
)
"""
The requests whose time does not count: those of brokers, and what comes before all others.
"""
NO_ACKS: Final = 0
PERCENT: Final = 100.0

_SIZE_BYTES: Final = 4
_NOT_RUNNING: Final = -1.0


class Metered(Protocol):
    """
    A request with its message, as its ``RequestContext`` has them.
    """

    route: Route
    frame_bytes: int
    request: Any


class Meter:
    """
    Counts what one request uses.

    Invariants:

    1. It is counted once, when its answer is made, or when it is clear that there is none.
    2. ``_spent_s`` is the time of the stretches that have ended, and ``_since`` the begin of the
       one that has not.
    """

    __slots__ = (
        "_client",
        "_client_id",
        "_is_counted",
        "_mutations",
        "_quotas",
        "_since",
        "_spent_s",
        "_user",
        "is_timed",
    )

    def __init__(self, quotas: RequestQuotas, client: Client, header: RequestHeader) -> None:
        self._quotas = quotas
        self._client = client
        self._user = client.principal.name
        self._client_id: str = header.client_id or ""
        self._is_counted = not client.is_authenticated
        self.is_timed = bool(quotas.request.limits) and header.api_key not in EXEMPT
        """Whether its time counts."""
        self._mutations: MutationQuota | None = None
        self._spent_s = 0.0
        self._since = _NOT_RUNNING

    def resume(self) -> bool:
        """
        Time counts from now on; false if it does so already.
        """
        if self._since != _NOT_RUNNING:
            return False
        self._since = self._quotas.now()
        return True

    def pause(self) -> None:
        """
        Time does not count from now on.
        """
        self._spent_s += self._quotas.now() - self._since
        self._since = _NOT_RUNNING

    def exempt(self) -> None:
        """
        The request is not counted: it is one of a broker.
        """
        self._is_counted = True

    def told(
        self, request: Metered, response: Message | None, *, is_error: bool = False
    ) -> Message | None:
        """
        Count the request, and return its *response* with the time that its client has to wait.
        """
        throttle_ms = self._count(request, is_error=is_error)
        if not throttle_ms or response is None or not hasattr(response, "throttle_time_ms"):
            return response
        if is_frozen(type(response)):
            return replace(response, throttle_time_ms=throttle_ms)
        cast("Any", response).throttle_time_ms = throttle_ms
        return response

    def _count(self, request: Metered, *, is_error: bool) -> int:
        if self._is_counted:
            return 0
        self._is_counted = True
        quotas, now = self._quotas, self._quotas.now_ms()
        if request.route.registration.key != PRODUCE or is_error:
            mutations_ms = 0 if self._mutations is None else self._mutations.throttle_ms()
            return self._throttle("controller_mutation", mutations_ms, self._count_time(now))
        size = request.frame_bytes
        throttle_ms = quotas.produce.record(self._user, self._client_id, size, now)
        # What has no answer cannot tell its client to wait for the time that it takes.
        time_ms = 0 if request.request.acks == NO_ACKS else self._count_time(now)
        return self._throttle("produce", throttle_ms, time_ms)

    def _count_time(self, now: int) -> int:
        if not self.is_timed:
            return 0
        spent = self._spent_s
        if self._since != _NOT_RUNNING:
            spent += self._quotas.now() - self._since
        return self._quotas.request.record(self._user, self._client_id, spent * PERCENT, now)

    # Topics

    def charge(self, *, is_strict: bool, is_told: bool) -> Charge | None:
        """
        Return the function that counts created and deleted partitions; None without a quota.
        """
        quota = self._quotas.mutations.of(self._user, self._client_id, is_strict=is_strict)
        if quota is None:
            return None
        if is_told:
            self._mutations = quota
        return quota.charge

    # Fetches

    def most_fetched_bytes(self) -> float | None:
        """
        How much a consumer that was quiet may fetch without having to wait for it; None if there
        is no limit. A larger answer would never go out.
        """
        return self._quotas.fetch.most_at_once(self._user, self._client_id)

    async def count_fetch(self, request: Metered, response: Message) -> int:
        """
        Count a Fetch that is going to be answered so. If the client has to wait, its bytes do not
        count: return how long, and the answer has to be an empty one.
        """
        codec = request.route.response_codec
        buffers = written_at_once(codec, response)
        if buffers is None:
            buffers = await InSteps(codec.write_in_steps(response))
        size = _SIZE_BYTES + sum(len(cast("Any", buffer)) for buffer in buffers)
        if self._is_counted:
            return 0
        self._is_counted = True
        quotas, client_id = self._quotas, self._client_id
        now = quotas.now_ms()
        throttle_ms = quotas.fetch.record(self._user, client_id, size, now)
        throttle_ms = self._throttle("fetch", throttle_ms, self._count_time(now))
        if throttle_ms:
            quotas.fetch.take_back(self._user, client_id, size, now)
        return throttle_ms

    def _throttle(self, quota: str, throttle_ms: int, time_ms: int) -> int:
        """
        Let the client wait because of a *quota* or of the time that it takes, whichever is longer.
        """
        if time_ms >= throttle_ms:
            quota, throttle_ms = "request", time_ms
        if throttle_ms:
            self._quotas.count(quota, throttle_ms)
            self._client.throttle(throttle_ms / 1000)
        return throttle_ms
