from __future__ import annotations

import sys
from types import ModuleType

import pytest

from barnabas.storage.threads import turns
from tests.support.compiled import plain

MODULES = [turns, plain("barnabas.storage.threads.turns")]


@pytest.mark.parametrize("module", MODULES)
@pytest.mark.parametrize(("away_seconds", "rests"), [(0.000_001, 0), (0.0005, 1)])
def test_thread_that_returned_late_sleeps_briefly(
    module: ModuleType, away_seconds: float, rests: int
) -> None:
    """
    Another thread ran meanwhile and has more work.
    """
    now = 1000.0
    rested = 0

    def offer() -> None:
        nonlocal now
        now += away_seconds

    def rest() -> None:
        nonlocal rested
        rested += 1

    module.ThreadTurns(offer, rest, lambda: now).offer()

    assert rests == rested


@pytest.mark.parametrize("module", MODULES)
def test_switch_interval_is_short_while_a_long_task_runs(module: ModuleType) -> None:
    usual = sys.getswitchinterval()
    short_turns = module.ShortTurns()

    with short_turns:
        short = sys.getswitchinterval()
        with short_turns:
            assert short == sys.getswitchinterval()
        assert short == sys.getswitchinterval()
    after = sys.getswitchinterval()

    assert short < usual == after


def test_switch_interval_that_is_already_shorter_is_kept() -> None:
    usual = sys.getswitchinterval()
    sys.setswitchinterval(0.000_01)
    try:
        with turns.ShortTurns():
            assert sys.getswitchinterval() == pytest.approx(0.000_01)
    finally:
        sys.setswitchinterval(usual)
