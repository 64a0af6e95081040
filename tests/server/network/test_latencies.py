from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from barnabas.protocol import apis
from barnabas.server.config.listeners import Listener
from barnabas.server.network.latencies import BOUNDS_MS, Histogram, Latencies, TimedDispatch
from barnabas.server.requests.client import Client
from barnabas.server.requests.errors import CloseConnection

FETCH = apis.FETCH.key
FRAME = memoryview(FETCH.to_bytes(2, "big") + bytes(10))


CLIENT = Client(Listener("PLAINTEXT", "127.0.0.1", 0, "127.0.0.1", 0))


class Clock:
    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


class Context:
    """
    A request that is answered later.
    """

    on_answered: Callable[[], None]


def timed(answer: Any, clock: Clock, takes_s: float = 0.0) -> tuple[TimedDispatch, Latencies]:
    latencies = Latencies()

    def dispatch(frame: memoryview, client: Any) -> Any:
        clock.seconds += takes_s
        if isinstance(answer, Exception):
            raise answer
        return answer

    return TimedDispatch(dispatch, latencies, clock), latencies


@pytest.mark.parametrize(
    ("ms", "bucket"),
    [
        (0.0, 0),
        (0.05, 0),
        (0.051, 1),
        (0.3, 3),
        (9.99, 7),
        (29_999.0, len(BOUNDS_MS) - 1),
        (31_000.0, len(BOUNDS_MS)),
    ],
)
def test_latency_is_counted_in_the_bucket_that_ends_above_it(ms: float, bucket: int) -> None:
    histogram = Histogram()

    histogram.record(ms / 1000)

    assert 1 == histogram.counts[bucket]
    assert 1 == sum(histogram.counts)
    assert histogram.sum_ms == pytest.approx(ms)


def test_latency_bounds_increase() -> None:
    assert sorted(set(BOUNDS_MS)) == list(BOUNDS_MS)


@pytest.mark.parametrize("answer", [[b"answer"], None])
def test_immediate_response_is_measured(answer: Any) -> None:
    clock = Clock()
    dispatch, latencies = timed(answer, clock, 0.004)

    assert answer is dispatch(FRAME, CLIENT)

    assert [FETCH] == list(latencies.by_key)
    assert latencies.of(FETCH).sum_ms == pytest.approx(4)


def test_later_response_is_measured_when_its_buffers_are_ready() -> None:
    clock, context, work = Clock(), Context(), object()
    dispatch, latencies = timed((context, work), clock)

    answer: Any = dispatch(FRAME, CLIENT)
    assert (context, work) == answer
    clock.seconds += 3
    assert 0 == sum(latencies.of(FETCH).counts)
    context.on_answered()

    assert 1 == sum(latencies.of(FETCH).counts)
    assert latencies.of(FETCH).sum_ms == pytest.approx(3000)


def test_request_that_closes_its_connection_is_not_measured() -> None:
    dispatch, latencies = timed(CloseConnection("for a test"), Clock())

    for frame in (FRAME, memoryview(b""), memoryview(b"\xff\xff\xff")):
        with pytest.raises(CloseConnection):
            dispatch(frame, CLIENT)

    assert {} == latencies.by_key


def test_tokens_without_an_api_are_not_recorded() -> None:
    class RawTokens:
        takes_raw_tokens = True

    dispatch, latencies = timed([b"answer"], Clock())
    client: Any = Client(CLIENT.listener)
    client.authentication = RawTokens()

    assert [b"answer"] == dispatch(memoryview(b"x"), client)

    assert {} == latencies.by_key


def test_every_api_has_its_own_number() -> None:
    """
    One byte of the frame has it.
    """
    keys = [api.key for api in vars(apis).values() if isinstance(api, type(apis.FETCH))]

    assert max(keys) < 256
