from __future__ import annotations

import asyncio
from struct import pack
from types import SimpleNamespace
from typing import Any, cast

import pytest

from barnabas.coordination.steps import finished
from barnabas.protocol.codec.codec import decode, encode
from barnabas.protocol.errors import ErrorCode, RebalanceInProgress
from barnabas.protocol.messages.api_versions import ApiVersionsResponse
from barnabas.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.server.metrics import Metrics
from barnabas.server.requests.active_quotas import ActiveQuotas
from barnabas.server.requests.advertised_address import AdvertisedAddressCheck
from barnabas.server.requests.authorization import NOTHING
from barnabas.server.requests.client import Client
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.dispatch import Dispatcher
from barnabas.server.requests.error_response import error_response
from barnabas.server.requests.errors import CloseConnection
from barnabas.server.requests.registry import HANDLERS, Handler, Registration
from barnabas.server.scheduling.turns import Turns
from barnabas.testing.manual_clock import ManualClock
from tests.support.requests import a_client
from tests.support.samples import sample
from tests.support.server import until
from tests.support.some import some
from tests.support.wire_client import request_frame

HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")


def dispatcher(handler: Handler, metrics: Metrics | None = None) -> Dispatcher:
    versions = HeartbeatRequest.api.versions
    registration = Registration(
        key=12,
        request=HeartbeatRequest,
        response=HeartbeatResponse,
        handler=handler,
        needs=NOTHING,
        versions=versions,
        advertised=versions,
    )
    table = {12: registration, 18: HANDLERS[18]}
    return Dispatcher(
        table,
        cast(
            Any,
            SimpleNamespace(
                metrics=metrics or Metrics(),
                turns=Turns(),
                authorizer=None,
                quotas=ActiveQuotas(),
                advertised_address=AdvertisedAddressCheck(ManualClock()),
            ),
        ),
    )


async def no_answer(_request: HeartbeatRequest, _context: RequestContext) -> None:
    """
    A handler of requests without an answer.
    """


def call(dispatch: Dispatcher, frame: bytes, client: Client | None = None) -> Any:
    return dispatch(memoryview(bytearray(frame[4:])), client or a_client())


def answered(answer: Any, version: int) -> HeartbeatResponse:
    data = b"".join(answer)
    head = pack(">ii", len(data) - 4, 7) + (b"\0" if version >= 4 else b"")
    assert data.startswith(head)
    return decode(HeartbeatResponse, version, data[len(head) :])


@pytest.mark.parametrize("version", HeartbeatRequest.api.versions)
def test_handler_gets_the_request_and_its_response_is_framed(version: int) -> None:
    seen: list[tuple[Any, ...]] = []

    async def heartbeat(request: HeartbeatRequest, context: RequestContext) -> HeartbeatResponse:
        seen.append((request, context.version, context.client_id))
        return HeartbeatResponse(error_code=27)

    answer = call(dispatcher(heartbeat), request_frame(HEARTBEAT, version, 7, "me"))

    assert [(HEARTBEAT, version, "me")] == seen
    assert 27 == answered(answer, version).error_code


def test_request_without_a_response_is_not_answered() -> None:
    assert None is call(dispatcher(no_answer), request_frame(HEARTBEAT, 4, 7))


def test_error_of_a_handler_is_answered() -> None:
    async def heartbeat(request: HeartbeatRequest, context: RequestContext) -> HeartbeatResponse:
        raise RebalanceInProgress

    metrics = Metrics()
    answer = call(dispatcher(heartbeat, metrics), request_frame(HEARTBEAT, 4, 7))

    assert ErrorCode.REBALANCE_IN_PROGRESS == answered(answer, 4).error_code
    assert 1 == metrics.value("errors", api="Heartbeat", code="REBALANCE_IN_PROGRESS")


def test_unexpected_exception_is_answered_and_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def heartbeat(request: HeartbeatRequest, context: RequestContext) -> HeartbeatResponse:
        raise ZeroDivisionError("oops")

    client = a_client(address="10.0.0.1")
    answer = call(dispatcher(heartbeat), request_frame(HEARTBEAT, 4, 7, "me"), client)

    assert ErrorCode.UNKNOWN_SERVER_ERROR == answered(answer, 4).error_code
    (record,) = caplog.records
    assert "Heartbeat v4 of 'me' at 10.0.0.1:5 failed" == record.getMessage()
    assert record.exc_info is not None


async def test_response_that_cannot_be_encoded_is_answered_as_an_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    event = asyncio.Event()

    async def heartbeat(request: HeartbeatRequest, context: RequestContext) -> HeartbeatResponse:
        await event.wait()
        return HeartbeatResponse(error_code=2**20)

    frame = request_frame(HEARTBEAT, 4, 7)

    context, work = call(dispatcher(heartbeat), frame)
    event.set()
    later = context.buffers(await work.future())
    at_once = call(dispatcher(heartbeat), frame)

    for answer in (at_once, later):
        assert ErrorCode.UNKNOWN_SERVER_ERROR == answered(answer, 4).error_code
    assert 2 == len(caplog.records)


async def test_coroutine_that_does_not_wait_is_answered_at_once() -> None:
    async def heartbeat(request: HeartbeatRequest, context: RequestContext) -> HeartbeatResponse:
        await asyncio.sleep(0)
        return HeartbeatResponse(error_code=0)

    answer = call(dispatcher(heartbeat), request_frame(HEARTBEAT, 4, 7))

    assert 0 == answered(answer, 4).error_code


async def test_coroutine_that_waits_is_passed_on_with_its_response_encoder() -> None:
    event = asyncio.Event()

    async def heartbeat(request: HeartbeatRequest, context: RequestContext) -> HeartbeatResponse:
        await event.wait()
        return HeartbeatResponse(error_code=0)

    context, work = call(dispatcher(heartbeat), request_frame(HEARTBEAT, 4, 7))
    assert work.is_waiting
    event.set()

    assert 0 == answered(context.buffers(await work.future()), 4).error_code
    assert 27 == answered(context.buffers(RebalanceInProgress()), 4).error_code


async def test_handler_says_when_its_effects_are_done_and_how_it_is_hurried() -> None:
    polled = asyncio.Event()
    told: list[str] = []

    async def heartbeat(request: HeartbeatRequest, context: RequestContext) -> HeartbeatResponse:
        await asyncio.sleep(0.001)
        context.effects_done(polled.set, is_seen=False)
        await polled.wait()
        return HeartbeatResponse(error_code=0)

    context, work = call(dispatcher(heartbeat), request_frame(HEARTBEAT, 4, 7))
    is_early = context.effects is not None
    context.on_effects = lambda: told.append("done")
    await until(lambda: told)
    assert not is_early
    assert not work.is_done
    assert not context.effects.is_seen
    context.effects.hurry()

    assert 0 == answered(context.buffers(await work.future()), 4).error_code
    assert ["done"] == told


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (pack(">hhih", 9999, 0, 7, -1), "9999"),
        (pack(">hhih", 12, 5, 7, -1) + b"\0", r"v5 is not supported, only v0 to v4"),
        (pack(">hhih", 12, -1, 7, -1), r"v-1 is not supported"),
        (
            pack(">hhih", 12, 0, 7, -1) + b"\0\x05ab",
            r"Heartbeat is malformed: HeartbeatRequest version 0",
        ),
        (pack(">hhih", 12, 0, 7, 100) + b"abc", "header"),
        (b"\0\x0c\0", "header"),
    ],
    ids=["key", "version", "negative", "body", "client id", "short"],
)
def test_malformed_request_closes_the_connection(frame: bytes, reason: str) -> None:
    dispatch = dispatcher(no_answer)

    with pytest.raises(CloseConnection, match=reason):
        call(dispatch, b"size" + frame)


def test_api_without_a_handler_closes_the_connection() -> None:
    frame = request_frame(MetadataRequest(topics=None), 9, 7)

    with pytest.raises(CloseConnection, match="API key 3 is unknown"):
        call(dispatcher(no_answer), frame)


@pytest.mark.parametrize("version", [5, 99, -1])
def test_unknown_api_versions_version_is_answered_in_version_0(version: int) -> None:
    frame = b"size" + pack(">hhih", 18, version, 7, -1) + b"\0whatever"

    data = b"".join(call(dispatcher(no_answer), frame))

    response = decode(ApiVersionsResponse, 0, data[8:])
    assert ErrorCode.UNSUPPORTED_VERSION == response.error_code
    assert [(18, 0, 4)] == [
        (entry.api_key, entry.min_version, entry.max_version) for entry in response.api_keys
    ]


def test_requests_are_counted_by_api() -> None:
    metrics = Metrics()
    dispatch = dispatcher(no_answer, metrics)
    for _ in range(3):
        call(dispatch, request_frame(HEARTBEAT, 4, 7))

    assert 3 == metrics.value("requests", api="Heartbeat")


def test_bytes_behind_a_request_are_ignored() -> None:
    frame = request_frame(HEARTBEAT, 4, 7) + b"trailing"

    assert None is call(dispatcher(no_answer), frame)


@pytest.mark.parametrize("key", sorted(HANDLERS))
def test_every_api_has_an_error_response_in_every_version(key: int) -> None:
    registration = HANDLERS[key]
    for version in some(registration.versions):
        request = sample(registration.request)

        code = ErrorCode.UNKNOWN_SERVER_ERROR
        response = finished(error_response(registration, request, version, code, None))

        assert b"\xff\xff" in encode(response, version), f"v{version} hides the error"
