"""
One look at all metrics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.coordination.steps import checkpoint
from barnabas.server.http.metrics.cluster import write_cluster
from barnabas.server.http.metrics.counted import write_counted
from barnabas.server.http.metrics.exposition import Blocks
from barnabas.server.http.metrics.families import FAMILIES
from barnabas.server.http.metrics.forecasts import write_forecasts
from barnabas.server.http.metrics.groups import write_groups
from barnabas.server.http.metrics.lag_times import LagTimes
from barnabas.server.http.metrics.logs import write_logs
from barnabas.server.http.metrics.process import ProcessFigures, write_process
from barnabas.server.http.metrics.rates import ScrapeRates
from barnabas.server.http.metrics.requests import write_latencies

if TYPE_CHECKING:
    from barnabas.server.http.observed import ObservedBroker


async def scrape(
    broker: ObservedBroker,
    process: ProcessFigures,
    *,
    times: LagTimes,
    rates: ScrapeRates,
    build: str,
    is_open_metrics: bool,
) -> list[bytes]:
    """
    The text of all families, in pieces.

    The samples are not of one moment: clients are served while they are written. Before the logs
    are loaded there are none of logs.

    Args:
        process: what the system says of the process.
        times: those of the last scrape, for the lag of groups.
        rates: what earlier scrapes have seen.
        build: the version of the broker.
    """
    blocks = Blocks(FAMILIES, is_open_metrics=is_open_metrics)
    places = broker.config.barnabas_http_metrics_partitions
    await write_counted(broker, build, blocks)
    await write_latencies(broker.latencies, blocks)
    await write_logs(broker.partitions, places, blocks)
    rates.write(blocks)
    if broker.parts is not None:
        write_cluster(broker.parts, broker.partitions, blocks)
        await write_groups(broker.parts, places, times, blocks)
    if broker.forecasts is not None:
        await write_forecasts(broker.forecasts, places, broker.clock.now_ms(), blocks)
    write_process(process, blocks)
    await checkpoint()
    return blocks.chunks()
