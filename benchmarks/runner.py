"""
Runs measures against the brokers by turns, so that what else the machine does hits both.
"""

from __future__ import annotations

import math
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Final

from confluent_kafka import KafkaException

from benchmarks.contender import Contender
from benchmarks.measure import Measure, Run, Unavailable, Values
from benchmarks.results import Measured

FAILURES: Final = (
    Unavailable,
    AssertionError,  # Measures check what they are answered.
    KafkaException,
    OSError,
    subprocess.SubprocessError,
)
"""
What ends a measure, and not the whole run.
"""


class Budget:
    """
    How long all measures together may take, shared out among them as they come.

    Args:
        seconds: for all of them.
        measures: how many there are.
    """

    def __init__(self, seconds: float, measures: int) -> None:
        self._end = time.monotonic() + seconds
        self._left = measures

    def next_share(self) -> float:
        """
        Seconds for the next measure: up to twice what falls to each, for most need less.
        """
        remaining = max(0.0, self._end - time.monotonic())
        share = min(remaining, 2 * remaining / self._left)
        self._left -= 1
        return share


def run(
    measure: Measure, contenders: Sequence[Contender], passes: int, seconds: float = math.inf
) -> Measured:
    """
    Run it *passes* times with each broker. If one cannot, that is reported and there is no figure.

    Args:
        seconds: no further pass begins after that, but for the first one that counts.
    """
    began = time.monotonic()
    passes = min(passes, measure.most_passes)
    try:
        taken = _samples(measure, contenders, passes, began + seconds)
    except FAILURES as reason:
        _say(f"{measure.name}: skipped: {reason!r}")
        return Measured(measure.name, measure.client, measure.figures, skipped=str(reason))
    _say(f"{measure.name}: {time.monotonic() - began:.0f} s")
    number = measure.warm_ups
    return Measured(
        measure.name,
        measure.client,
        measure.figures,
        samples={name: values[number:] for name, values in taken.items()},
        warm_ups={name: values[:number] for name, values in taken.items()},
    )


def _samples(
    measure: Measure, contenders: Sequence[Contender], passes: int, end: float
) -> dict[str, list[Values]]:
    taken: dict[str, list[Values]] = {contender.name: [] for contender in contenders}
    with ExitStack() as opened:
        runs: dict[str, Run] = {}
        for contender in contenders:
            runs[contender.name] = opened.enter_context(measure.opened(contender))
        for turn in range(1 - measure.warm_ups, passes + 1):
            if turn > 1 and time.monotonic() > end:
                break
            for name, take in runs.items():
                values = take()
                taken[name].append(values)
                _say(f"{measure.name} {turn}: {name}: {_words(measure, values)}")
    return taken


def _words(measure: Measure, values: Values) -> str:
    return ", ".join(f"{values[figure.key]:,.2f} {figure.unit}" for figure in measure.figures)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
