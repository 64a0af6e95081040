"""
Assignments beside the assignors of Apache Kafka, in groups that change.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from barnabas.coordination.groups.assignors.java_order import hashing
from tests.support.group_lives import (
    ASSIGN,
    ChainScript,
    CrowdedScript,
    RandomScript,
    StreamsScript,
)
from tests.support.java_programs import run_program

pytestmark = [pytest.mark.interop, pytest.mark.prove]

SOURCE = Path(__file__).parent / "java" / "Assigns.java"
GROUPS = 1200
Scripts = Sequence[RandomScript | ChainScript | CrowdedScript | StreamsScript]


def run(scripts: Scripts, fewest: int, end: int) -> None:
    """
    Run scripts of *fewest* steps or more, less than *end*, and compare the answers with Kafka's.
    """
    for script in scripts:
        script.run(script.choose.randrange(fewest, end))
    lines = (f"{line}\n" for script in scripts for line in script.lines)
    answers = iter(run_program(SOURCE, lines=lines).split("\n")[1:])
    for seed, script in enumerate(scripts):
        for number, ours in enumerate(script.answers):
            assert next(answers) == ours, f"seed {seed}, heartbeat {number}"


@pytest.fixture(autouse=True)
def _same_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hashing, "java_release", int(run_program(SOURCE)))


@pytest.mark.parametrize("assignor", ASSIGN)
def test_assignments_equal_kafkas(assignor: str) -> None:
    """
    Groups whose members and topics come, go and change get the same partitions, in records of the
    same order.
    """
    run([RandomScript(assignor, seed) for seed in range(GROUPS)], 2, 25)


def test_chained_subscriptions_are_balanced_as_in_kafka() -> None:
    """
    Balancing ends after a number of rounds, and the group may not be balanced by then.
    """
    run([ChainScript("uniform", seed) for seed in range(12)], 1, 5)


@pytest.mark.parametrize("assignor", ["uniform", "simple"])
def test_crowded_bins_change_assignments_as_in_kafka(assignor: str) -> None:
    """
    Where 16 or 32 members get partitions in turn, the numbers of each share few bins of its set, so
    that Java makes trees of them. Their order decides what is taken away.
    """
    run([CrowdedScript(assignor, seed) for seed in range(40)], 4, 16)


def test_task_assignments_equal_kafkas() -> None:
    """
    Streams groups get the same active and standby tasks.
    """
    run([StreamsScript(seed) for seed in range(GROUPS)], 2, 40)
