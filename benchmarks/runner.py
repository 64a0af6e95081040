"""
Runs measures against the brokers by turns, so that what else the machine does hits both.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack

from confluent_kafka import KafkaException

from benchmarks.contender import Contender
from benchmarks.measure import Measure, Run, Unavailable, Values
from benchmarks.results import Measured


def run(measure: Measure, contenders: Sequence[Contender], passes: int) -> Measured:
    """
    Run it *passes* times with each broker. If one cannot, that is reported and there is no figure.
    """
    began = time.monotonic()
    try:
        taken = _samples(measure, contenders, min(passes, measure.most_passes))
    except (Unavailable, OSError, KafkaException, subprocess.SubprocessError) as reason:
        _say(f"{measure.name}: skipped: {reason}")
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
    measure: Measure, contenders: Sequence[Contender], passes: int
) -> dict[str, list[Values]]:
    taken: dict[str, list[Values]] = {contender.name: [] for contender in contenders}
    with ExitStack() as opened:
        runs: dict[str, Run] = {}
        for contender in contenders:
            runs[contender.name] = opened.enter_context(measure.opened(contender))
        for number in range(measure.warm_ups + passes):
            for name, take in runs.items():
                values = take()
                taken[name].append(values)
                turn = number + 1 - measure.warm_ups
                _say(f"{measure.name} {turn}: {name}: {_words(measure, values)}")
    return taken


def _words(measure: Measure, values: Values) -> str:
    return ", ".join(f"{values[figure.key]:,.2f} {figure.unit}" for figure in measure.figures)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
