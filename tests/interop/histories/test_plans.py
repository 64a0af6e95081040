"""
Plans come from seeds, and shrink.
"""

from __future__ import annotations

from tests.interop.histories.checker import Violation
from tests.interop.histories.plan import Plan, plan_of
from tests.interop.histories.run import Failure, shrink


def test_seed_gives_one_plan() -> None:
    assert str(plan_of(5)) == str(plan_of(5))
    assert str(plan_of(5)) != str(plan_of(6))


async def test_plan_shrinks_to_the_steps_that_break_the_rule() -> None:
    plan = next(p for p in map(plan_of, range(100)) if len(p.steps) > 40 and len(p.faults) == 2)
    needed = {3, 17}
    runs = 0

    async def run(smaller: Plan) -> Failure | None:
        nonlocal runs
        runs += 1
        if needed <= {step.number for step in smaller.steps} and plan.faults[1] in smaller.faults:
            return Failure(smaller, [Violation("rule", "reason")])
        return Failure(smaller, [Violation("another rule", "reason")])

    smallest = await shrink(Failure(plan, [Violation("rule", "reason")]), run, tries=500)

    assert needed == {step.number for step in smallest.plan.steps}
    assert [plan.faults[1]] == list(smallest.plan.faults)
    assert runs < 200


async def test_failure_shows_plan_and_reason() -> None:
    plan = plan_of(5)
    shown = str(Failure(plan, [Violation("records_are_kept", "x is lost")], "the log"))
    assert str(plan) in shown
    assert "records_are_kept: x is lost" in shown
    assert "the log" in shown
