"""
The rule that offsets and epochs of partitions only move forward.
"""

from __future__ import annotations

import pytest

from tests.checkers.fakes import partition
from tests.support.checkers.positions import Positions


def findings_after(first: object, **later: int) -> list[str]:
    found: list[str] = []
    positions = Positions(found.append)
    positions.look([first])  # type: ignore[list-item]  # a fake
    log = first.log  # type: ignore[attr-defined]
    for name, value in later.items():
        setattr(first if name == "leader_epoch" else log, name, value)
    positions.look([first])  # type: ignore[list-item]  # a fake
    return found


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("log_start_offset", "log start offset"),
        ("last_stable_offset", "last stable offset"),
        ("high_watermark", "high watermark"),
        ("leader_epoch", "leader epoch"),
    ],
)
def test_position_that_moves_back_is_found(name: str, rule: str) -> None:
    found = findings_after(partition(start=3, epoch=3), **{name: 2})

    assert [f"orders-0: the {rule} went back from"] == [
        text.rpartition(" from ")[0] + " from" for text in found
    ]


def test_positions_may_move_forward() -> None:
    later = {"log_start_offset": 4, "last_stable_offset": 6, "high_watermark": 6}

    assert [] == findings_after(partition(start=3), **later, log_end_offset=6, leader_epoch=4)


def test_high_watermark_behind_the_end_of_the_log_is_found() -> None:
    found: list[str] = []

    Positions(found.append).look([partition(high=6, end=5)])

    assert ["orders-0: the high watermark 6 is behind the end of the log, 5"] == found


def test_partition_of_a_recreated_topic_may_begin_at_zero() -> None:
    found: list[str] = []
    positions = Positions(found.append)

    positions.look([partition()])
    positions.look([partition(stable=0, high=0, end=0)])

    assert [] == found
