"""
Brokers with a fault break the rules.

``BARNABAS_FAULTS=all`` adds the faults that break their rules only in some runs.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from typing import Final

import pytest

from tests.interop.histories.checker import RULES, nothing_went_wrong
from tests.interop.histories.faults import FAULTS, BrokerFault
from tests.interop.histories.plan import plan_of
from tests.interop.histories.run import run_plan
from tests.mutations.overlay import Overlay
from tests.support.checkers import findings

pytestmark = pytest.mark.prove

WITH_ALL: Final = os.environ.get("BARNABAS_FAULTS") == "all"
TRIES: Final = 3
"""
The timing of a history varies, so a fault may break no rule in one run.
"""


@pytest.fixture(scope="module")
def overlay(tmp_path_factory: pytest.TempPathFactory) -> Overlay:
    return Overlay(tmp_path_factory.mktemp("overlay") / "packages")


@pytest.fixture(
    params=[each for each in FAULTS if WITH_ALL or each.is_certain], ids=lambda fault: fault.name
)
def fault(
    request: pytest.FixtureRequest, overlay: Overlay, monkeypatch: pytest.MonkeyPatch
) -> Iterator[BrokerFault]:
    """
    A fault of the brokers that the test starts.
    """
    path = os.pathsep.join([overlay.python_path, os.environ["PYTHONPATH"]])
    monkeypatch.setenv("PYTHONPATH", path)
    monkeypatch.setenv(findings.VARIABLE, "")  # The checkers see most of these faults as well.
    with overlay.changed(request.param.changes):
        yield request.param


def test_fault_breaks_its_rule(fault: BrokerFault) -> None:
    broken: set[str] = set()
    for seed in fault.seeds * TRIES:
        failure = asyncio.run(run_plan(plan_of(seed)))
        broken |= {violation.rule for violation in failure.violations} if failure else set()
        if broken >= fault.rules:
            return
    raise AssertionError(f"{fault.rules - broken} hold in spite of the fault")


def test_each_rule_has_a_fault() -> None:
    rules = {rule.__name__ for rule in RULES} - {nothing_went_wrong.__name__}

    assert rules == {rule for fault in FAULTS for rule in fault.rules}
