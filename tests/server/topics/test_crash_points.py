"""
Topics whose broker dies while they are made, changed or deleted, at every step of it.

After each answer and before each change of the disk: what was answered is there, what was asked for
is there wholly or not at all, and the next broker goes on.
"""

from __future__ import annotations

import pytest

from tests.support.crash.points import crash_again_in_recovery, crash_at_every_point
from tests.support.crash.topics import Topics

pytestmark = pytest.mark.usefixtures("silent_logs")


async def test_crash_at_any_operation_leaves_topics_whole_or_absent(all_crash_points: bool) -> None:
    await crash_at_every_point(Topics(), all_crash_points)


async def test_second_crash_during_metadata_recovery_loses_nothing(
    all_crash_points: bool,
) -> None:
    await crash_again_in_recovery(Topics(), all_crash_points)
