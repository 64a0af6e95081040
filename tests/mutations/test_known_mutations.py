"""
The harness, on mutations that tests have caught before.

``python -m tests.mutations`` draws others. A mutation that survives here was caught once: compare
the tests of then and now.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest

from tests.mutations.drawing import ROOT, named
from tests.mutations.mutation import Mutation, find_mutations
from tests.mutations.running import SURVIVED, UNREACHED, Outcome, Runner

pytestmark = pytest.mark.prove

KNOWN: Final = Path(__file__).with_name("known_killed.json")
"""Tests by the names of the mutations that they have caught."""

SEED: Final = 1
DRAWN: Final = 12

MODULE: Final = "storage/barnabas/storage/units.py"


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    with TemporaryDirectory(prefix="mutations-", ignore_cleanup_errors=True) as folder:
        yield Runner(Path(folder))


@pytest.fixture(scope="module")
def known() -> dict[str, str]:
    found: dict[str, str] = json.loads(KNOWN.read_text())
    return found


@pytest.fixture(scope="module")
def mutations(known: dict[str, str]) -> dict[str, Mutation]:
    """
    Those of the list that the product still has, in an order drawn by the seed.
    """
    found = named(known)
    names = sorted(found)
    random.Random(SEED).shuffle(names)
    return {name: found[name] for name in names}


def imported(runner: Runner) -> bytes:
    """
    Return the source of ``MODULE`` as a process that a test starts would import it.
    """
    code = "import barnabas.storage.units as m; print(open(m.__file__).read(), end='')"
    environment = os.environ | {"PYTHONPATH": runner.overlay.python_path}
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, check=True
    ).stdout


def run(runner: Runner, mutation: Mutation | None, *tests: str) -> Outcome:
    return runner.run(mutation, tests, expected_seconds=10)


def test_tests_still_catch_the_mutations_they_have_caught(
    runner: Runner, known: dict[str, str], mutations: dict[str, Mutation]
) -> None:
    statuses: list[str] = []
    survivors: list[str] = []

    for name, mutation in mutations.items():
        outcome = run(runner, mutation, known[name])
        # A test may have another name by now.
        if outcome.status != UNREACHED:
            statuses.append(outcome.status)
        if outcome.status == SURVIVED:
            survivors.append(name)
        if len(statuses) == DRAWN:
            break

    assert [] == survivors
    assert DRAWN == len(statuses), f"{KNOWN.name} has too few mutations of today's product"


def test_the_product_as_it_is_passes_the_tests_that_catch_its_mutations(
    runner: Runner, known: dict[str, str], mutations: dict[str, Mutation]
) -> None:
    tests = [known[name] for name in mutations][:DRAWN]

    assert SURVIVED == run(runner, None, *tests).status


def test_processes_import_the_mutated_module_and_the_checkout_stays_as_it_is(
    runner: Runner,
) -> None:
    source = (ROOT / MODULE).read_bytes()
    mutation = next(iter(find_mutations(MODULE, ROOT)))

    with runner.overlay.holding(mutation.path, mutation.apply):
        assert mutation.apply(source) == imported(runner) != source
        assert source == (ROOT / MODULE).read_bytes()

    assert source == imported(runner)
