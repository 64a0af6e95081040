"""
Transactions whose broker dies, at every step of them.

After each request and before each change of the disk: the outcome is all or nothing, of records
and of offsets, and the next producer with the same id goes on.
"""

from __future__ import annotations

import pytest

from tests.support.crash.points import crash_again_in_recovery, crash_at_every_point
from tests.support.crash.transactions import Transactions
from tests.support.transactional_client import FIRST, SECOND

pytestmark = pytest.mark.usefixtures("silent_logs")

SUBJECTS = {
    "first protocol, abort, then commit": Transactions(FIRST, False, True),
    "second protocol, commit, then abort": Transactions(SECOND, True, False),
    "first protocol, commit, then abort": Transactions(FIRST, True, False),
    "second protocol, abort, then commit": Transactions(SECOND, False, True),
}
USUAL = list(SUBJECTS)[:2]
"""The others only with ``--crash-points all``."""


@pytest.fixture(
    params=[
        pytest.param(name, marks=pytest.mark.prove if number else ())
        for number, name in enumerate(SUBJECTS)
    ]
)
def subject(request: pytest.FixtureRequest, all_crash_points: bool) -> Transactions:
    if not all_crash_points and request.param not in USUAL:
        pytest.skip("only with --crash-points all")
    return SUBJECTS[request.param]


async def test_crash_at_any_operation_leaves_all_of_a_transaction_or_nothing(
    subject: Transactions, all_crash_points: bool
) -> None:
    await crash_at_every_point(subject, all_crash_points)


async def test_second_crash_while_a_transaction_is_completed_loses_nothing(
    subject: Transactions, all_crash_points: bool
) -> None:
    await crash_again_in_recovery(subject, all_crash_points)
