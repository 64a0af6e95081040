from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.bench import Bench
from benchmarks.exchange import Exchanger
from benchmarks.loader import Loader
from benchmarks.suite import all_measures, chosen
from tests.support.some import some


@pytest.fixture(scope="module", name="bench")
def make_bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    directory = tmp_path_factory.mktemp("bench")
    return Bench(directory, Loader(directory), Exchanger(directory), 1.0, 1 << 30)


def names(bench: Bench, only: str = "", skip: str = "") -> list[str]:
    return [measure.name for measure in chosen(all_measures(bench), only, skip)]


def test_every_measure_has_a_unique_name(bench: Bench) -> None:
    assert len(set(names(bench))) == len(names(bench))


def test_patterns_include_and_exclude_measures(bench: Bench) -> None:
    assert ["start-0", "consume-1k"] == names(bench, "start-*,consume-1k", "*-1000")
    assert "recovery" not in names(bench, skip="recovery")


def test_pattern_without_a_match_is_refused(bench: Bench) -> None:
    with pytest.raises(ValueError, match="no measure is named produce-2k; there are start-0"):
        names(bench, "produce-2k")


def test_figures_of_a_measure_have_unique_keys(bench: Bench) -> None:
    for measure in some(all_measures(bench)):
        keys = [figure.key for figure in measure.figures]
        assert len(set(keys)) == len(keys), measure.name


def test_scale_changes_counts_to_at_least_one(tmp_path: Path) -> None:
    small = Bench(tmp_path, Loader(tmp_path), Exchanger(tmp_path), 0.001, 1)

    assert 100 == small.count(100_000)
    assert 1 == small.count(5)
    assert 32 == small.count(5, at_least=32)
