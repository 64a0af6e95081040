from __future__ import annotations

import math
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import pytest

from benchmarks.contender import Contender, apache_kafka, barnabas, further
from benchmarks.further import Further
from benchmarks.measure import Measure, Run, Unavailable, Values, rate
from benchmarks.runner import Budget, in_short, run


class Journal:
    """
    A measure that records the calls it gets, and returns the number of its runs.
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
    Two brokers that are never started.
    """
    return [apache_kafka(tmp_path), barnabas(tmp_path)]


def test_brokers_take_turns_and_warm_ups_do_not_count(contenders: list[Contender]) -> None:
    journal = Journal()

    measured = run(journal.measure(warm_ups=1), contenders, passes=2)

    both = ["Apache Kafka", "Barnabas"]
    opened, closed = [f"open {name}" for name in both], [f"close {name}" for name in both[::-1]]
    assert [*opened, *both, *both[::-1], *both, *closed] == journal.entries
    assert {
        "Apache Kafka": [{"per_second": 3}],
        "Barnabas": [{"per_second": 4}],
    } == measured.warm_ups
    assert [{"per_second": 5}, {"per_second": 8}] == measured.samples["Barnabas"]


def test_long_measurements_are_repeated_less_often(contenders: list[Contender]) -> None:
    measured = run(Journal().measure(warm_ups=0, most_passes=3), contenders, passes=5)

    assert 3 == len(measured.samples["Barnabas"])


def test_one_pass_is_made_even_without_time(contenders: list[Contender]) -> None:
    """
    After all warm-ups: a cold figure is worse than a late one.
    """
    measured = run(Journal().measure(warm_ups=2), contenders, passes=5, seconds=0)

    assert 2 == len(measured.warm_ups["Barnabas"])
    assert 1 == len(measured.samples["Barnabas"])


def test_requirements_missing_on_this_machine_are_reported(contenders: list[Contender]) -> None:
    measured = run(Journal("no Java").measure(warm_ups=0), contenders, passes=1)

    assert "no Java" == measured.skipped
    assert {} == measured.samples


def test_budget_share_is_at_most_twice_the_average_and_never_more_than_is_left() -> None:
    budget = Budget(1_000_000, 4)

    shares = [budget.next_share() for _ in range(4)]

    assert pytest.approx([500_000, 666_667, 1_000_000, 1_000_000], rel=0.001) == shares
    assert math.inf == Budget(math.inf, 1).next_share()


class Stumbling(Journal):
    def __init__(self, broker: str, at: Literal["open", "run", "close"]) -> None:
        super().__init__()
        self._broker = broker
        self._at = at

    @contextmanager
    def opened(self, contender: Contender) -> Iterator[Run]:
        self._stumble("open", contender)
        with super().opened(contender) as take:

            def run() -> Values:
                self._stumble("run", contender)
                return take()

            yield run
        self._stumble("close", contender)

    def _stumble(self, place: str, contender: Contender) -> None:
        if (self._broker, self._at) == (contender.name, place):
            raise OSError(f"no {place}")


@pytest.mark.parametrize("at", ["open", "run", "close"])
def test_failing_further_broker_does_not_affect_the_others(
    tmp_path: Path, contenders: list[Contender], at: Literal["open", "run", "close"]
) -> None:
    beside = further(Further("Another", ("another",)), tmp_path)

    measured = run(Stumbling("Another", at).measure(1), [*contenders, beside], passes=2)

    assert "" == measured.skipped
    assert {"Another": f"no {at}"} == measured.failed
    assert {"Apache Kafka": 2, "Barnabas": 2} == {
        name: len(taken) for name, taken in measured.samples.items()
    }


@pytest.mark.parametrize("at", ["open", "run", "close"])
def test_comparison_requires_both_brokers(
    contenders: list[Contender], at: Literal["open", "run", "close"]
) -> None:
    measured = run(Stumbling("Barnabas", at).measure(1), contenders, passes=2)

    assert f"no {at}" == measured.skipped
    assert {} == measured.samples
    assert {} == measured.failed


def test_further_broker_takes_its_turn(tmp_path: Path, contenders: list[Contender]) -> None:
    journal = Journal()
    beside = further(Further("Another", ("another",)), tmp_path)

    measured = run(journal.measure(warm_ups=0), [*contenders, beside], passes=2)

    assert ["Barnabas", "Another", "Apache Kafka"] == journal.entries[3:6]
    assert ["Another", "Apache Kafka", "Barnabas"] == journal.entries[6:9]
    assert 2 == len(measured.samples["Another"])


@pytest.mark.parametrize(
    ("reason", "sentence"),
    [
        (Unavailable("no Java"), "no Java"),
        (AssertionError(), "AssertionError"),
        (OSError("first line\nsecond line"), "first line"),
        (subprocess.CalledProcessError(3, ["/tmp/somewhere/load", "produce"]), "load ended with"),
        (subprocess.TimeoutExpired(["/tmp/somewhere/load"], 300.0), "load did not end in 300 s"),
    ],
)
def test_reason_of_a_failure_is_one_line_without_paths(reason: Exception, sentence: str) -> None:
    assert in_short(reason).startswith(sentence)
    assert "/tmp" not in in_short(reason)
