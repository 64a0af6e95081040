"""
What a measure is: something to run against a broker, and the figures that come out of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import Enum

from benchmarks.contender import Contender

Values = Mapping[str, float]
"""
What one run gave, by the keys of its figures.
"""

Run = Callable[[], Values]


Opened = Callable[[Contender], AbstractContextManager[Run]]
"""
Prepares a broker, gives what runs a measure on it, and tidies up.
"""


class Unavailable(Exception):
    """
    This machine lacks what a measure needs; the message says what, in one line.
    """


class Goal(Enum):
    """
    What a goal limits.
    """

    RATIO_AT_LEAST = "ratio >="
    RATIO_AT_MOST = "ratio <="
    AT_MOST = "<="

    def is_met(self, limit: float, barnabas: float, kafka: float | None) -> bool | None:
        """
        Whether the medians meet it; None if the other broker was not measured.
        """
        if self is Goal.AT_MOST:
            return barnabas <= limit
        if not kafka:
            return None
        ratio = barnabas / kafka
        return ratio >= limit if self is Goal.RATIO_AT_LEAST else ratio <= limit


@dataclass(frozen=True, slots=True)
class Figure:
    """
    One line of the table.

    Attributes:
        key: where it is in the values of a run.
        group: the plot that it belongs to.
        limit: of the goal, if there is one.
    """

    key: str
    title: str
    unit: str
    less_is_better: bool = False
    group: str = ""
    goal: Goal | None = None
    limit: float = 0.0


@dataclass(frozen=True, slots=True)
class Measure:
    """
    Attributes:
        client: what the load comes from.
        warm_ups: how many runs are thrown away before those that count.
        most_passes: an upper limit for what takes long, or does not vary.
    """

    name: str
    client: str
    opened: Opened
    figures: tuple[Figure, ...]
    warm_ups: int = 2
    most_passes: int = 1000


def rate(title: str, unit: str = "rec/s", at_least: float | None = None) -> Figure:
    """
    Records, requests or transactions in a second.

    Args:
        at_least: the ratio of Barnabas to Apache Kafka to reach.
    """
    goal = None if at_least is None else Goal.RATIO_AT_LEAST
    return Figure("per_second", title, unit, False, "rate", goal, at_least or 0.0)


def megabytes(title: str = "- in megabytes") -> Figure:
    """
    Payload in a second, in millions of bytes.
    """
    return Figure("megabytes_per_second", title, "MB/s", False, "megabytes")


def broker_cpu(at_most: float | None = None, of: str = "records") -> Figure:
    """
    Seconds of processor time that the broker's process takes for a million records.
    """
    goal = None if at_most is None else Goal.RATIO_AT_MOST
    title = f"- broker's CPU, a million {of}"
    return Figure("cpu_per_million", title, "s", True, "cpu", goal, at_most or 0.0)


def latencies(title: str, prefix: str = "", p99_at_most: float | None = None) -> tuple[Figure, ...]:
    """
    Four percentiles.

    Args:
        prefix: of their keys.
        p99_at_most: the ratio that the third of them is not to exceed.
    """
    names = {"p50": "p50", "p95": "p95", "p99": "p99", "p999": "p99.9"}
    return tuple(
        Figure(
            f"{prefix}{key}",
            f"{title}, {name}" if key == "p50" else f"- {name}",
            "ms",
            True,
            "latency",
            Goal.RATIO_AT_MOST if key == "p99" and p99_at_most is not None else None,
            p99_at_most or 0.0,
        )
        for key, name in names.items()
    )


def throughput(records: int, size: int, seconds: float, cpu: float) -> Values:
    """
    What the figures above ask for.

    Args:
        size: bytes of payload in each record.
        cpu: seconds of processor time that the broker used meanwhile.
    """
    return {
        "seconds": seconds,
        "records": records,
        "per_second": records / seconds,
        "megabytes_per_second": records * size / seconds / 1e6,
        "cpu_per_million": cpu / records * 1e6,
    }
