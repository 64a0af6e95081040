"""
One look at all metrics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.server.http.metrics.counted import write_counted
from barnabas.server.http.metrics.exposition import Blocks
from barnabas.server.http.metrics.families import FAMILIES
from barnabas.server.http.metrics.forecasts import write_forecasts
from barnabas.server.http.metrics.groups import write_groups
from barnabas.server.http.metrics.lag_times import LagTimes
from barnabas.server.http.metrics.logs import write_logs
from barnabas.server.http.metrics.process import write_process
from barnabas.server.http.metrics.requests import write_latencies
from barnabas.server.scheduling.turns import Steps

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

    from barnabas.server.http.observed import ObservedBroker


def scrape(
    broker: ObservedBroker,
    process: list[Metric],
    *,
    times: LagTimes,
    build: str,
    is_open_metrics: bool,
) -> Steps[list[bytes]]:
    """
    The text of all families, in pieces.

    The samples are not of one moment: clients are served while they are written. Before the logs
    are loaded there are none of logs.

    Args:
        process: what the system says of the process.
        times: those of the last scrape, for the lag of groups.
        build: the version of the broker.
    """
    blocks = Blocks(FAMILIES, is_open_metrics=is_open_metrics)
    places = broker.config.barnabas_http_metrics_partitions
    yield from write_counted(broker, build, blocks)
    yield from write_latencies(broker.latencies, blocks)
    yield from write_logs(broker.partitions, places, blocks)
    if broker.parts is not None:
        yield from write_groups(broker.parts, places, times, blocks)
    if broker.forecasts is not None:
        yield from write_forecasts(broker.forecasts, places, broker.clock.now_ms(), blocks)
    write_process(process, blocks)
    yield
    return blocks.chunks()
