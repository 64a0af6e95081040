"""
The quotas of clients on requests: rates and limits of bytes, time and partitions. How long a client
has to wait, ``security.quotas.rate`` computes.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from barnabas.coordination.cluster.client_quotas import CLIENT_ID, USER
from barnabas.server.security.quotas.limits import DEFAULT
from barnabas.server.security.quotas.quotas import (
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    MutationQuotas,
    RateQuotas,
)
from barnabas.server.security.quotas.rate import Windows, now_ms
from barnabas.storage.clock import perf_counter
from barnabas.storage.units import SECONDS

if TYPE_CHECKING:
    from barnabas.coordination.clock import ServerClock
    from barnabas.server.config import BrokerConfig
    from barnabas.server.metrics import Metrics


class RequestQuotas:
    """
    All quotas of a broker on requests.
    """

    def __init__(self, config: BrokerConfig, clock: ServerClock, metrics: Metrics) -> None:
        windows = Windows(config.quota_window_num, config.quota_window_size_seconds * SECONDS)
        self._clock = clock
        self._metrics = metrics
        self.produce = RateQuotas(windows)
        self.fetch = RateQuotas(windows)
        self.request = RateQuotas(windows, longest_ms=windows.size_ms)
        self.now: Callable[[], float] = perf_counter
        """A time in seconds, by which requests are timed."""
        controller_windows = Windows(
            config.controller_quota_window_num,
            config.controller_quota_window_size_seconds * SECONDS,
        )
        self.mutations = MutationQuotas(controller_windows, clock)
        self._by_key: Mapping[str, RateQuotas | MutationQuotas] = {
            CONTROLLER_MUTATION_RATE: self.mutations,
            PRODUCER_BYTE_RATE: self.produce,
            CONSUMER_BYTE_RATE: self.fetch,
            REQUEST_PERCENTAGE: self.request,
        }

    @property
    def are_any(self) -> bool:
        """
        Whether any client has a quota.
        """
        return any(quotas.limits for quotas in self._by_key.values())

    def change(self, names: Mapping[str, str | None], key: str, value: float | None) -> None:
        """
        Set a quota, or remove it. Connections that are open go by it as well.

        Args:
            names: those of the quota's entity by type; None stands for the default.
        """
        quotas = self._by_key.get(key)
        if quotas is not None:
            quotas.change((_part(names, USER), _part(names, CLIENT_ID)), value)

    def now_ms(self) -> int:
        """
        The time of the broker's clock, which the rates go by.
        """
        return now_ms(self._clock)

    def count(self, quota: str, throttle_ms: int) -> None:
        """
        A client has to wait for so long, by a quota of this kind.
        """
        self._metrics.count_throttled("requests_throttled", quota, throttle_ms)


def _part(names: Mapping[str, str | None], kind: str) -> str | None:
    return (names[kind] or DEFAULT) if kind in names else None
