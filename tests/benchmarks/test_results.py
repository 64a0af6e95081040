from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import results
from benchmarks.measure import Figure, Goal, broker_cpu, rate
from benchmarks.results import APACHE_KAFKA, BARNABAS, Measured, Results


def measured(figure: Figure, kafka: list[float], ours: list[float]) -> Results:
    samples = {
        name: [{figure.key: value} for value in values]
        for name, values in ((APACHE_KAFKA, kafka), (BARNABAS, ours))
    }
    return Results({}, {}, [Measured("a-measure", "a client", (figure,), samples)])


def test_result_is_the_median_with_the_best_beside_it() -> None:
    [line] = measured(rate("rate"), [100, 90, 5], [200, 1, 180]).lines()

    assert (90, 180) == (line.apache_kafka, line.barnabas)
    assert 2.0 == line.ratio
    assert 2.0 == line.best_ratio


def test_best_of_a_measure_to_minimise_is_the_smallest() -> None:
    [line] = measured(broker_cpu(), [10, 12, 11], [4, 6, 5]).lines()

    assert 5 / 11 == line.ratio
    assert 0.4 == line.best_ratio


@pytest.mark.parametrize(
    ("figure", "kafka", "ours", "is_met"),
    [
        (rate("rate", at_least=2.0), 100, 200, True),
        (rate("rate", at_least=2.0), 100, 199, False),
        (broker_cpu(at_most=0.5), 10, 5, True),
        (broker_cpu(at_most=0.5), 10, 5.1, False),
        (Figure("memory", "memory", "MiB", goal=Goal.AT_MOST, limit=40), 300, 40, True),
        (Figure("memory", "memory", "MiB", goal=Goal.AT_MOST, limit=40), 300, 41, False),
        (rate("rate"), 100, 1, None),
    ],
)
def test_goal_is_met_or_not(figure: Figure, kafka: float, ours: float, is_met: bool | None) -> None:
    [line] = measured(figure, [kafka], [ours]).lines()

    assert is_met is line.is_met


def test_goal_of_a_ratio_does_not_apply_to_one_broker_alone() -> None:
    figure = rate("rate", at_least=2.0)
    alone = Measured("a-measure", "a client", (figure,), {BARNABAS: [{figure.key: 1.0}]})

    [line] = Results({}, {}, [alone]).lines()

    assert line.ratio is None
    assert line.is_met is None


def test_written_results_can_be_read(tmp_path: Path) -> None:
    figure = rate("rate", at_least=2.0)
    skipped = Measured("another", "Java", (broker_cpu(),), skipped="no Java")
    told = measured(figure, [1, 2], [3, 4]).measured
    before = Results({"cores": "2"}, {"passes": "5"}, [*told, skipped])

    before.write(tmp_path / "results.json")

    assert before == results.read(tmp_path / "results.json")


def test_later_run_replaces_the_same_measure() -> None:
    before = measured(rate("rate"), [100], [200])
    another = Measured("another", "a client", (broker_cpu(),))
    before = Results(before.machine, before.options, [*before.measured, another])

    merged = results.merged([before, measured(rate("rate"), [100], [300])])

    assert ["a-measure", "another"] == [one.name for one in merged.measured]
    [line] = merged.lines()
    assert 300 == line.barnabas
