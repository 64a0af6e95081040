"""
The part of a broker that its HTTP server sees.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from barnabas.coordination.clock import ServerClock
    from barnabas.server.config import BrokerConfig, Listener
    from barnabas.server.forecast.forecasts import Forecasts
    from barnabas.server.metrics import Metrics
    from barnabas.server.network.latencies import Latencies
    from barnabas.server.network.registry import Connections
    from barnabas.server.partitions.partitions import Partitions
    from barnabas.server.readiness import Readiness
    from barnabas.server.requests.broker_parts import BrokerParts
    from barnabas.server.scheduling.turns import Turns
    from barnabas.server.scheduling.workers import Workers
    from barnabas.storage.fs.interface import Files
    from barnabas.storage.manager.manager import LogManager


class ObservedBroker(Protocol):
    """
    A broker, from the beginning of its start to the end of its stop.
    """

    config: BrokerConfig
    clock: ServerClock
    files: Files
    metrics: Metrics
    partitions: Partitions
    readiness: Readiness
    turns: Turns
    workers: Workers
    connections: Connections | None
    """None until clients are served."""
    log_manager: LogManager | None
    """None until the directories are locked."""
    parts: BrokerParts | None
    """None until clients are served."""

    @property
    def forecasts(self) -> Forecasts | None:
        """
        What groups will lose; None until clients are served.
        """

    @property
    def latencies(self) -> Latencies | None:
        """
        The times that requests take; None until HTTP is there.
        """

    @property
    def listeners(self) -> Sequence[Listener]:
        """
        The listeners of Kafka's protocol.
        """
