"""
The harness on mutations that tests catch: some of a list, and one with an exact outcome.

A run with other seeds is a job for a quiet hour: ``python -m tests.mutations``.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest

from tests.mutations.drawing import named
from tests.mutations.mutation import Mutation
from tests.mutations.running import SURVIVED, UNREACHED, Outcome, Runner

pytestmark = pytest.mark.prove

KNOWN: Final = Path(__file__).with_name("known_killed.json")
"""Tests by the names of the mutations that they have caught."""

SEED: Final = 1
DRAWN: Final = 12

VARINT: Final = "protocol/barnabas/protocol/records/varints.py"
VARINT_TESTS: Final = "tests/protocol/records/test_varints.py"


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
