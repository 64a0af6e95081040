"""
Runs measures against the brokers by turns, so that what else the machine does hits all of them.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from confluent_kafka import KafkaException

from benchmarks.contender import Contender
from benchmarks.measure import Measure, Unavailable, Values
from benchmarks.results import Measured
from benchmarks.turns import turns

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
    Run it *passes* times with each broker. If one of the two cannot, that is reported and there is
    no figure; a further one only lacks its own.

    Args:
        seconds: no further pass begins after that, but for the first one that counts.
    """
    began = time.monotonic()
    passes = min(passes, measure.most_passes)
    try:
        seats = _taken(measure, contenders, passes, began + seconds)
    except FAILURES as reason:
        _say(f"{measure.name}: skipped: {reason!r}")
        return Measured(measure.name, measure.client, measure.figures, skipped=in_short(reason))
    _say(f"{measure.name}: {time.monotonic() - began:.0f} s")
    number = measure.warm_ups
    return Measured(
        measure.name,
        measure.client,
        measure.figures,
        samples={seat.name: seat.taken[number:] for seat in seats if not seat.failure},
        warm_ups={seat.name: seat.taken[:number] for seat in seats if not seat.failure},
        failed={seat.name: seat.failure for seat in seats if seat.failure},
    )


def in_short(reason: BaseException) -> str:
    """
    Why there is no figure, in one line without any path.
    """
    match reason:
        case subprocess.CalledProcessError(cmd=[program, *_], returncode=status):
            return f"{Path(program).name} ended with status {status}"
        case subprocess.TimeoutExpired(cmd=[program, *_], timeout=seconds):
            return f"{Path(program).name} did not end in {seconds:.0f} s"
    return (str(reason).splitlines() or [type(reason).__name__])[0]


class _Seat:
    """
    The place of one broker in a measure. That of a further one is empty from its first failure on.

    Attributes:
        taken: what its runs gave.
        failure: why there are no more of them, if so.
    """

    def __init__(self, measure: Measure, contender: Contender) -> None:
        self.name = contender.name
        self.taken: list[Values] = []
        self.failure = ""
        self._measure = measure
        self._contender = contender
        self._prepared = ExitStack()

    def __enter__(self) -> _Seat:
        with self._excused():
            opened = self._measure.opened(self._contender)
            self._run = self._prepared.enter_context(opened)
        return self

    def __exit__(self, *raised: Any) -> None:
        with self._excused():
            self._prepared.__exit__(*raised)

    def run(self, turn: int) -> None:
        """
        Take one more sample.
        """
        if self.failure:
            return
        # Otherwise the system writes back the files of the broker before during this sample.
        os.sync()
        with self._excused():
            values = self._run()
            self.taken.append(values)
            _say(f"{self._measure.name} {turn}: {self.name}: {_words(self._measure, values)}")

    @contextmanager
    def _excused(self) -> Iterator[None]:
        """
        What a further broker cannot do is noted, and ends only what was prepared for it.
        """
        try:
            yield
        except FAILURES as reason:
            if not self._contender.is_further:
                raise
            self.failure = in_short(reason)
            _say(f"{self._measure.name}: {self.name}: failed: {reason!r}")
            with suppress(*FAILURES):
                self._prepared.__exit__(type(reason), reason, reason.__traceback__)


def _taken(
    measure: Measure, contenders: Sequence[Contender], passes: int, end: float
) -> list[_Seat]:
    with ExitStack() as opened:
        seats = [opened.enter_context(_Seat(measure, contender)) for contender in contenders]
        for turn in range(1 - measure.warm_ups, passes + 1):
            if turn > 1 and time.monotonic() > end:
                break
            for seat in turns(seats, turn):
                seat.run(turn)
    return seats


def _words(measure: Measure, values: Values) -> str:
    return ", ".join(f"{values[figure.key]:,.2f} {figure.unit}" for figure in measure.figures)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
