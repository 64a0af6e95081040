"""
The rates of topics, from one look to the next.

Nothing is counted while nobody looks. A rate is that since the sample before the last one, which is
``SAMPLE_S`` old or older if looks come often.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Final, NamedTuple, TypedDict

SAMPLE_S: Final = 5.0
LEAST_S: Final = 1.0
"""Over less time there is no rate."""
MOST_S: Final = 60.0
"""A sample that is older says little of now, if there is a later one."""


class Counts(NamedTuple):
    """
    What went in and out since the broker has started.
    """

    records_in: int
    bytes_in: int
    bytes_out: int


class RatesView(TypedDict):
    """
    What goes in and out, for each second.
    """

    over_s: Annotated[float, "the seconds that the rates are an average of"]
    records_in: float
    bytes_in: float
    bytes_out: float


class _Sample(NamedTuple):
    at: float
    counts: Mapping[str, Counts]


class TopicRates:
    """
    The last two samples of what one kind of looks has counted.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        """
        Args:
            now: returns a time in seconds.
        """
        self._now = now
        self._samples: list[_Sample] = []

    def note(self, counts: Mapping[str, Counts]) -> Mapping[str, RatesView]:
        """
        The rates of a look that has just counted; none for a name that the sample does not have.
        """
        now = self._now()
        samples = self._samples
        base = next((each for each in samples if LEAST_S <= now - each.at <= MOST_S), None)
        if base is None and samples and now - samples[-1].at >= LEAST_S:
            base = samples[-1]
        if not samples or now - samples[-1].at >= SAMPLE_S:
            self._samples = [*samples[-1:], _Sample(now, counts)]
        if base is None:
            return {}
        over_s = now - base.at
        return {
            name: _rates(over_s, base.counts[name], count)
            for name, count in counts.items()
            if name in base.counts
        }


def _rates(over_s: float, before: Counts, after: Counts) -> RatesView:
    # A topic that was deleted and created again begins at 0.
    grown = [max(0, late - early) / over_s for early, late in zip(before, after, strict=True)]
    records_in, bytes_in, bytes_out = (round(each, 3) for each in grown)
    return {
        "over_s": round(over_s, 3),
        "records_in": records_in,
        "bytes_in": bytes_in,
        "bytes_out": bytes_out,
    }
