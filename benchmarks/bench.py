"""
What all measures have in common: the programs that make load, and how much of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from benchmarks.exchange import Exchanger
from benchmarks.loader import Loader


@dataclass(frozen=True, slots=True)
class Bench:
    """
    Attributes:
        directory: for what a measure has to write itself.
        scale: a factor on all counts and durations; with 1 a run takes about two seconds.
        recovery_bytes: how much a broker has to recover after a kill.
    """

    directory: Path
    loader: Loader
    exchanger: Exchanger
    scale: float
    recovery_bytes: int

    def count(self, number: float, at_least: int = 1) -> int:
        """
        That many at the scale of this run.
        """
        return max(at_least, int(number * self.scale))
