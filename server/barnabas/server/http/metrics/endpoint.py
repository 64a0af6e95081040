"""
The answer to ``GET /metrics``.

Scrapers that ask while the metrics are read get the same text. It is written in turns of the event
loop, and compressed in a thread, which runs beside the loop.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, Final

from prometheus_client.exposition import choose_encoder, gzip_accepted
from starlette.requests import Request

from barnabas.server.http.answers import json_response, send_in_pieces
from barnabas.server.http.metrics.lag_times import LagTimes
from barnabas.server.http.metrics.process import ProcessMetrics
from barnabas.server.http.metrics.rates import ScrapeRates
from barnabas.server.http.metrics.scrape import scrape

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from barnabas.server.http.observed import ObservedBroker

MOST_SCRAPES: Final = 4
"""
So many answers are written or sent at a time: each has its text in memory until it is read.
"""
OPEN_METRICS: Final = "application/openmetrics-text"
CONTENT_TYPES: Final = {
    True: b"application/openmetrics-text; version=1.0.0; charset=utf-8",
    False: b"text/plain; version=0.0.4; charset=utf-8",
}
"""
By whether it is OpenMetrics. Newer versions of either format are asked for, and can read these.
"""
_GZIP_LEVEL: Final = 1
_GZIP: Final = 16 + zlib.MAX_WBITS
"""In the arguments of zlib: with the header of gzip."""


class MetricsEndpoint:
    """
    Answers scrapers.

    Invariants:

    1. At most ``MOST_SCRAPES`` answers are in progress.
    2. The metrics are read once at a time for each format.
    """

    def __init__(self, broker: ObservedBroker) -> None:
        self._broker = broker
        self._process = ProcessMetrics()
        self._times = LagTimes()
        self._rates = ScrapeRates(broker.metrics, broker.clock)
        self._build = version("barnabas")
        self._answering = 0
        self._reading: dict[tuple[bool, bool], asyncio.Task[Sequence[bytes]]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """
        Answer with the metrics, as OpenMetrics where ``prometheus_client`` would choose that.
        """
        request = Request(scope, receive)
        if self._answering >= MOST_SCRAPES:
            busy = json_response(
                {"error": f"{MOST_SCRAPES} scrapes are in progress"}, 503, {"retry-after": "1"}
            )
            await busy(scope, receive, send)
            return
        self._answering += 1
        try:
            await self._answer(request, send)
        finally:
            self._answering -= 1

    async def _answer(self, request: Request, send: Send) -> None:
        is_open_metrics = _accepts_open_metrics(",".join(request.headers.getlist("accept")))
        is_zipped = gzip_accepted(",".join(request.headers.getlist("accept-encoding")))
        headers = [
            (b"content-type", CONTENT_TYPES[is_open_metrics]),
            (b"vary", b"accept, accept-encoding"),
        ]
        if is_zipped:
            headers.append((b"content-encoding", b"gzip"))
        text: Sequence[bytes] = ()
        if request.method != "HEAD":
            text = await self._text(is_open_metrics, is_zipped)
            headers.append((b"content-length", b"%d" % sum(map(len, text))))
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send_in_pieces(send, text)

    async def _text(self, is_open_metrics: bool, is_zipped: bool) -> Sequence[bytes]:
        key = is_open_metrics, is_zipped
        reading = self._reading.get(key)
        if reading is None:
            reading = asyncio.create_task(self._read(is_open_metrics, is_zipped))
            self._reading[key] = reading
            reading.add_done_callback(lambda _: self._reading.pop(key))
        # A scraper that leaves does not take the text from the others.
        return await asyncio.shield(reading)

    async def _read(self, is_open_metrics: bool, is_zipped: bool) -> Sequence[bytes]:
        broker = self._broker
        process = await broker.workers.in_upkeep(self._process.read)
        steps = scrape(
            broker,
            process,
            times=self._times,
            rates=self._rates,
            build=self._build,
            is_open_metrics=is_open_metrics,
        )
        text = await broker.turns.finish(steps, 1 + len(broker.partitions))
        return await broker.workers.in_upkeep(lambda: _zipped(text)) if is_zipped else text


def _accepts_open_metrics(accept: str) -> bool:
    """
    Whether ``prometheus_client`` would choose OpenMetrics. A version that is none is not accepted.
    """
    try:
        _, content_type = choose_encoder(accept)
    except (TypeError, ValueError):
        return False
    return content_type.startswith(OPEN_METRICS)


def _zipped(text: Sequence[bytes]) -> list[bytes]:
    """
    The pieces of *text* in the format of gzip.
    """
    stream = zlib.compressobj(_GZIP_LEVEL, wbits=_GZIP)
    return [*filter(None, map(stream.compress, text)), stream.flush()]
