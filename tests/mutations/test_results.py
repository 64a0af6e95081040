"""
Drawing mutations, and comparing the results of two runs.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutations.drawing import AREAS, area_of, draw, modules
from tests.mutations.results import Result, comparison, read, summary, write
from tests.mutations.running import KILLED, SURVIVED

NAME = "storage/barnabas/storage/clock.py::f::constant::1 -> 2"


def result(status: str, name: str = NAME) -> Result:
    return Result(name, "constant", 1, status, "test_f", 1.0, 1, 1)


@pytest.mark.prove
def test_a_seed_always_draws_the_same_mutations() -> None:
    drawn = draw("coordination", seed=1, count=30)

    assert 8 == len({mutation.name for mutation in drawn})
    assert drawn == draw("coordination", seed=1, count=30)
    assert drawn != draw("coordination", seed=2, count=30)


def test_a_module_belongs_to_one_area() -> None:
    for area in AREAS:
        assert {area} == {area_of(path) for path in modules(area)}


def test_a_mutation_that_only_the_first_run_caught_is_listed() -> None:
    lines = list(comparison([result(KILLED)], [result(SURVIVED)]))

    assert ["1 mutations are in both runs", "no longer caught: 1", f"    {NAME}"] == lines[:3]


def test_the_summary_lists_what_nothing_caught() -> None:
    assert f"    {NAME}" in list(summary([result(SURVIVED)]))
    assert f"    {NAME}" not in list(summary([result(KILLED)]))


def test_results_are_read_as_they_were_written(tmp_path: Path) -> None:
    write(tmp_path / "results.json", [result(KILLED), result(SURVIVED, "other")])

    assert [result(KILLED), result(SURVIVED, "other")] == read(tmp_path / "results.json")
