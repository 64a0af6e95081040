"""
Groups whose broker dies, at every step of their lives.

After each answer, and before each change of the disk: what was answered for is there, nothing is
there by half, the members go on, and soon everything is assigned again.
"""

from __future__ import annotations

import pytest

from tests.support.crash.group_clients import ConsumerClient, ShareGroupClient, StreamsClient
from tests.support.crash.group_workloads import consumers, migrations, shares, streams
from tests.support.crash.groups import Groups, Newcomer, Workload
from tests.support.crash.points import crash_again_in_recovery, crash_at_every_point

pytestmark = pytest.mark.usefixtures("silent_logs")


def consumer(member_id: str) -> ConsumerClient:
    return ConsumerClient(member_id, "t")


def sharer(member_id: str) -> ShareGroupClient:
    return ShareGroupClient(member_id, "t")


LIVES: dict[str, tuple[Workload, Newcomer]] = {
    "consumers": (consumers, consumer),
    "migrations": (migrations, consumer),
    "shares": (shares, sharer),
    "streams": (streams, StreamsClient),
}


@pytest.fixture(
    params=[
        pytest.param(name, marks=() if name == "consumers" else pytest.mark.prove) for name in LIVES
    ]
)
def life(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(params=[False, True], ids=["as usual", "synced"])
def subject(request: pytest.FixtureRequest, life: str, all_crash_points: bool) -> Groups:
    if request.param and not all_crash_points:
        pytest.skip("only with --crash-points all")
    return Groups(*LIVES[life], is_synced=request.param, stride=1 if all_crash_points else 8)


async def test_crash_at_any_operation_keeps_acknowledged_group_changes(
    subject: Groups, all_crash_points: bool
) -> None:
    await crash_at_every_point(subject, all_crash_points)


async def test_second_crash_while_groups_are_loaded_loses_nothing(
    subject: Groups, all_crash_points: bool
) -> None:
    await crash_again_in_recovery(subject, all_crash_points)
