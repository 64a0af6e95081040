"""
Rates that Apache Kafka computes itself, over the time between scrapes.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.server.http.metrics import families
from barnabas.server.http.metrics.exposition import Blocks, labels_text
from barnabas.storage.clock import thread_seconds

if TYPE_CHECKING:
    from collections.abc import Mapping

    from barnabas.coordination.clock import ServerClock
    from barnabas.server.metrics import Metrics

WINDOW_S: Final = 30.0
"""
The rates are those since the last scrape that is at least so old.
"""

_LEAST_S: Final = 0.001


class _Look(NamedTuple):
    time_s: float
    busy_s: float
    """Processor time of the event loop's thread."""
    accepted: Mapping[str, float]
    """Connections by listener."""


class ScrapeRates:
    """
    Remembers what earlier scrapes have seen, those of all scrapers together.
    """

    def __init__(self, metrics: Metrics, clock: ServerClock) -> None:
        self._metrics = metrics
        self._clock = clock
        self._looks = deque([self._look()])

    def write(self, blocks: Blocks) -> None:
        """
        Write the rates up to now. Call it on the event loop's thread.
        """
        now = self._look()
        looks = self._looks
        while len(looks) > 1 and looks[1].time_s <= now.time_s - WINDOW_S:
            looks.popleft()
        before = looks[0]
        if now.time_s - looks[-1].time_s >= 1:
            looks.append(now)
        seconds = max(now.time_s - before.time_s, _LEAST_S)
        block = blocks.of(families.CONNECTION_RATE.name)
        for listener, count in now.accepted.items():
            rate = (count - before.accepted.get(listener, 0)) / seconds
            block.add(labels_text({"listener": listener}), rate)
        idle = min(1.0, max(0.0, 1 - (now.busy_s - before.busy_s) / seconds))
        blocks.of(families.NETWORK_IDLE.name).add("", idle)
        blocks.of(families.HANDLERS_IDLE.name).add("", idle)

    def _look(self) -> _Look:
        accepted = {
            dict(labels)["listener"]: counter.value
            for labels, counter in self._metrics.counters("connections_accepted")
        }
        return _Look(self._clock.monotonic(), thread_seconds(), accepted)
