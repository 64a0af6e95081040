"""
What a run of the benchmarks gave, and its file: every sample, and all that a report needs.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from benchmarks.measure import Figure, Goal, Values

APACHE_KAFKA: Final = "Apache Kafka"
BARNABAS: Final = "Barnabas"


@dataclass(frozen=True, slots=True)
class Measured:
    """
    All runs of one measure, by broker.

    Attributes:
        warm_ups: what was run first and does not count.
        skipped: why there is nothing, if so.
        failed: why a further broker has no samples, by its name.
    """

    name: str
    client: str
    figures: tuple[Figure, ...]
    samples: Mapping[str, Sequence[Values]] = field(default_factory=dict)
    warm_ups: Mapping[str, Sequence[Values]] = field(default_factory=dict)
    skipped: str = ""
    failed: Mapping[str, str] = field(default_factory=dict)

    def median(self, broker: str, figure: Figure) -> float | None:
        """
        Of the runs that count; None if that broker was not measured.
        """
        taken = self._values(broker, figure)
        return statistics.median(taken) if taken else None

    def best(self, broker: str, figure: Figure) -> float | None:
        """
        The least disturbed of the runs that count.
        """
        taken = self._values(broker, figure)
        if not taken:
            return None
        return min(taken) if figure.less_is_better else max(taken)

    def _values(self, broker: str, figure: Figure) -> list[float]:
        return [values[figure.key] for values in self.samples.get(broker, ())]


@dataclass(frozen=True, slots=True)
class Line:
    """
    One figure of the brokers; Barnabas is compared with Apache Kafka.
    """

    measured: Measured
    figure: Figure
    apache_kafka: float | None
    barnabas: float | None
    ratio: float | None
    """Of the medians."""
    best_ratio: float | None
    """Of the least disturbed runs."""

    @property
    def is_met(self) -> bool | None:
        """
        Whether the goal is; None if there is none, or nothing to compare with.
        """
        if self.figure.goal is None or self.barnabas is None:
            return None
        return self.figure.goal.is_met(self.figure.limit, self.barnabas, self.apache_kafka)


@dataclass(frozen=True, slots=True)
class Results:
    """
    Attributes:
        machine: what it ran on, by name.
        options: what the command line said.
    """

    machine: Mapping[str, str]
    options: Mapping[str, str]
    measured: Sequence[Measured]

    def brokers(self) -> list[str]:
        """
        Both, and the further ones that stood beside them.
        """
        seen = [name for one in self.measured for name in (*one.samples, *one.failed)]
        return list(dict.fromkeys((APACHE_KAFKA, BARNABAS, *seen)))

    def lines(self) -> list[Line]:
        """
        Every figure that at least one broker has, in order.
        """
        return [
            _line(measured, figure)
            for measured in self.measured
            if any(measured.samples.values())
            for figure in measured.figures
        ]

    def write(self, path: Path) -> None:
        """
        Keep all of it as JSON.
        """
        path.write_text(json.dumps(asdict(self), indent=1, default=_plain) + "\n")


def is_dial(measured: Measured) -> bool:
    """
    Whether it measures what durability costs, which has a table and a plot of its own.
    """
    return measured.name.startswith("dial-")


def _line(measured: Measured, figure: Figure) -> Line:
    kafka, ours = (measured.median(name, figure) for name in (APACHE_KAFKA, BARNABAS))
    best_kafka, best_ours = (measured.best(name, figure) for name in (APACHE_KAFKA, BARNABAS))
    return Line(measured, figure, kafka, ours, _ratio(ours, kafka), _ratio(best_ours, best_kafka))


def _ratio(ours: float | None, kafka: float | None) -> float | None:
    return None if ours is None or not kafka else ours / kafka


def _plain(value: object) -> object:
    assert isinstance(value, Goal), value
    return value.value


def read(path: Path) -> Results:
    """
    What ``Results.write`` has kept.
    """
    found = json.loads(path.read_text())
    measured = [_measured(one) for one in found["measured"]]
    return Results(found["machine"], found["options"], measured)


def merged(runs: Sequence[Results]) -> Results:
    """
    The first of some runs, with what later ones measured in place of the same measures.
    """
    found = {one.name: one for one in runs[0].measured}
    for run in runs[1:]:
        found |= {one.name: one for one in run.measured}
    return Results(runs[0].machine, runs[0].options, list(found.values()))


def _measured(found: Mapping[str, Any]) -> Measured:
    figures = tuple(
        Figure(**{**figure, "goal": Goal(figure["goal"]) if figure["goal"] else None})
        for figure in found["figures"]
    )
    return Measured(**{**found, "figures": figures})
