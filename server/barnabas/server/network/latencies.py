"""
The times that requests take, by API.

A request is timed from when its frame is there to when the buffers of its answer are: waits for
records, members and fsyncs count, the network does not. ``TimedDispatch`` stands before the
dispatcher of a broker that shows its metrics; no other broker loads this module.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from barnabas.server.network.resources import Dispatch, Dispatched
    from barnabas.server.requests.client import Client

BOUNDS_MS: Final[tuple[float, ...]] = (
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    25.0,
    50.0,
    100.0,
    250.0,
    500.0,
    1000.0,
    5000.0,
    30000.0,
)
"""
The upper bounds of the buckets, in ms; the last bucket has none.
"""

LOW_BYTE_OF_KEY: Final = 1
"""
The place of this byte in a frame, which begins with the key of the API.
"""


class Histogram:
    """
    The times of the requests to one API.

    ``counts`` has the number of requests in each bucket, those of smaller ones not included.
    """

    __slots__ = ("_bounds", "counts", "sum_ms")

    def __init__(self) -> None:
        self._bounds: list[float] = list(BOUNDS_MS)
        self.counts = [0] * (len(BOUNDS_MS) + 1)
        self.sum_ms = 0.0

    def record(self, seconds: float) -> None:
        """
        Count a request that took *seconds*.
        """
        ms = seconds * 1000.0
        self.sum_ms += ms
        number = 0
        # Most are in one of the first: a search by halves would take longer.
        for bound in self._bounds:
            if ms <= bound:
                break
            number += 1
        self.counts[number] += 1


class Latencies:
    """
    The histograms of all APIs that were asked.
    """

    __slots__ = ("by_key",)

    def __init__(self) -> None:
        self.by_key: dict[int, Histogram] = {}

    def of(self, key: int) -> Histogram:
        """
        The histogram of the API with that key.
        """
        found = self.by_key.get(key)
        if found is None:
            found = self.by_key[key] = Histogram()
        return found


class TimedDispatch:
    """
    Dispatches requests, and records how long they take.
    """

    __slots__ = ("_dispatch", "_latencies", "_now")

    def __init__(self, dispatch: Dispatch, latencies: Latencies, now: Callable[[], float]) -> None:
        """
        Args:
            now: returns a time in seconds.
        """
        self._dispatch = dispatch
        self._latencies = latencies
        self._now = now

    def __call__(self, frame: memoryview, client: Client) -> Dispatched:
        """
        Handle one request.

        Raises:
            CloseConnection: the request cannot be answered, and is not recorded.
        """
        authentication = client.authentication
        if authentication is not None and authentication.takes_raw_tokens:
            return self._dispatch(frame, client)
        began: float = self._now()
        # All keys are below 256. A frame without one, or with another, closes its connection.
        key = frame[LOW_BYTE_OF_KEY] if len(frame) > LOW_BYTE_OF_KEY else -1
        answer = self._dispatch(frame, client)
        histogram = self._latencies.of(key)
        if answer is None or isinstance(answer, list):
            histogram.record(self._now() - began)
            return answer
        pending, _ = answer
        pending.on_answered = lambda: histogram.record(self._now() - began)
        return answer
