"""
The histograms of how long requests take.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Final

from barnabas.coordination.steps import checkpoint
from barnabas.server.http.metrics.exposition import Blocks, labels_text
from barnabas.server.http.metrics.families import LATENCY
from barnabas.server.network.latencies import BOUNDS_MS
from barnabas.server.requests.registry import HANDLERS

if TYPE_CHECKING:
    from barnabas.server.network.latencies import Latencies

_BOUNDS: Final = (*(repr(bound) for bound in BOUNDS_MS), "+Inf")


async def write_latencies(latencies: Latencies | None, blocks: Blocks) -> None:
    """
    Write a histogram for each API that was asked.
    """
    if latencies is None:
        return
    block = blocks.of(LATENCY.name)
    for key, histogram in tuple(latencies.by_key.items()):
        name = HANDLERS[key].name
        count = 0
        for bound, count in zip(_BOUNDS, accumulate(histogram.counts), strict=True):
            block.add(labels_text({"request": name, "le": bound}), count, "_bucket")
        labels = labels_text({"request": name})
        block.add(labels, count, "_count")
        block.add(labels, histogram.sum_ms, "_sum")
        await checkpoint()
