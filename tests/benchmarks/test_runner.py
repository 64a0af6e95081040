"""
benchmarks.runner: which run counts, and in which order they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from benchmarks.contender import Contender, apache_kafka, barnabas
from benchmarks.measure import Measure, Run, Unavailable, Values, rate
from benchmarks.runner import Budget, run


class Journal:
    """
    A measure that notes what is done to it, and gives the number of its runs.
    """

    def __init__(self, missing: str = "") -> None:
        self.entries: list[str] = []
        self._missing = missing

    @contextmanager
    def opened(self, contender: Contender) -> Iterator[Run]:
        self.entries.append(f"open {contender.name}")

        def take() -> Values:
            if self._missing:
                raise Unavailable(self._missing)
            self.entries.append(contender.name)
            return {"per_second": len(self.entries)}

        yield take
        self.entries.append(f"close {contender.name}")

    def measure(self, warm_ups: int, most_passes: int = 1000) -> Measure:
        return Measure("a-measure", "a client", self.opened, (rate("rate"),), warm_ups, most_passes)


@pytest.fixture(name="contenders")
def make_contenders(tmp_path: Path) -> list[Contender]:
    """
    Two brokers that are never asked for, and so never run.
    """
    return [apache_kafka(tmp_path), barnabas(tmp_path)]


def test_brokers_take_turns_and_warm_ups_do_not_count(contenders: list[Contender]) -> None:
    journal = Journal()

    measured = run(journal.measure(warm_ups=1), contenders, passes=2)

    turns = ["Apache Kafka", "Barnabas"]
    opened, closed = [f"open {name}" for name in turns], [f"close {name}" for name in turns[::-1]]
    assert [*opened, *turns * 3, *closed] == journal.entries
    assert {
        "Apache Kafka": [{"per_second": 3}],
        "Barnabas": [{"per_second": 4}],
    } == measured.warm_ups
    assert [{"per_second": 6}, {"per_second": 8}] == measured.samples["Barnabas"]


def test_what_takes_long_is_not_repeated_as_often(contenders: list[Contender]) -> None:
    measured = run(Journal().measure(warm_ups=0, most_passes=3), contenders, passes=5)

    assert 3 == len(measured.samples["Barnabas"])


def test_without_time_one_pass_is_still_made(contenders: list[Contender]) -> None:
    """
    After all warm-ups, for a cold figure is worse than a late one.
    """
    measured = run(Journal().measure(warm_ups=2), contenders, passes=5, seconds=0)

    assert 2 == len(measured.warm_ups["Barnabas"])
    assert 1 == len(measured.samples["Barnabas"])


def test_what_this_machine_lacks_is_told(contenders: list[Contender]) -> None:
    measured = run(Journal("no Java").measure(warm_ups=0), contenders, passes=1)

    assert "no Java" == measured.skipped
    assert {} == measured.samples


def test_shares_of_a_budget_are_twice_what_falls_to_each_but_never_more_than_is_left() -> None:
    budget = Budget(1_000_000, 4)

    shares = [budget.next_share() for _ in range(4)]

    assert pytest.approx([500_000, 666_667, 1_000_000, 1_000_000], rel=0.001) == shares
    assert math.inf == Budget(math.inf, 1).next_share()
