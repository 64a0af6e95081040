"""
What groups will lose, as foreseen in the last round.

The bound on series is that of the lag of groups; a sum over all series is right.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Final

from barnabas.coordination.steps import checkpoint
from barnabas.server.http.metrics import families
from barnabas.server.http.metrics.exposition import Blocks, escaped
from barnabas.server.http.metrics.groups import MOST_OF_A_NAME
from barnabas.server.http.metrics.others import OTHERS, SeriesRoom
from barnabas.storage.forecast.forecast import ForecastVerdict

if TYPE_CHECKING:
    from barnabas.server.forecast.forecasts import Forecasts

FORECASTS_PER_STEP: Final = 64


async def write_forecasts(forecasts: Forecasts, places: int, now_ms: int, blocks: Blocks) -> None:
    """
    Write the series of all groups whose pace is known.

    Args:
        places: the most partitions of groups with series of their own.
    """
    room = SeriesRoom(places)
    others = _Series(blocks)
    for number, (key, foreseen) in enumerate(forecasts):
        if number % FORECASTS_PER_STEP == 0:
            await checkpoint()
        if foreseen.verdict is ForecastVerdict.UNKNOWN:
            continue
        is_named = len(key.group_id) <= MOST_OF_A_NAME and room.take()
        series = _Series(blocks) if is_named else others
        if foreseen.loss is None:
            series.add(0, 0, inf)
        else:
            left_s = max(0.0, foreseen.loss.begins_ms - now_ms) / 1000
            series.add(foreseen.loss.size, foreseen.loss.records, left_s)
        if is_named:
            name = escaped(key.group_id)
            series.write(f'consumergroup="{name}",topic="{key.topic}",partition="{key.partition}"')
    if others.is_used:
        others.write(f'consumergroup="{OTHERS}",topic="{OTHERS}",partition="{OTHERS}"')


class _Series:
    """
    The losses that one set of labels has.
    """

    def __init__(self, blocks: Blocks) -> None:
        self._blocks = blocks
        self._size = self._records = 0
        self._left_s = inf
        self.is_used = False

    def add(self, size: int, records: int, left_s: float) -> None:
        self._size += size
        self._records += records
        self._left_s = min(self._left_s, left_s)
        self.is_used = True

    def write(self, labels: str) -> None:
        text = f"{{{labels}}}"
        self._blocks.of(families.FORECAST_BYTES.name).add(text, self._size)
        self._blocks.of(families.FORECAST_RECORDS.name).add(text, self._records)
        if self._left_s < inf:
            self._blocks.of(families.FORECAST_SECONDS.name).add(text, self._left_s)
