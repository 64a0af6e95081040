"""
Epochs of groups of the later protocols, and of what depends on them.
"""

from __future__ import annotations

from typing import Final

OFFSETS_OF_MEMBERS_SINCE: Final = 9
"""
The first version of OffsetCommit that members of these protocols may use.
"""
FIRST_EPOCH: Final = 1
"""
The epoch of a group without records: its first member makes it 2.
"""
FIRST_ASSIGNMENT_EPOCH: Final = 1
DELETED_ASSIGNMENT_EPOCH: Final = -1
UNKNOWN_TIME: Final = 0
"""
The time of the last assignment where there was none.
"""


def may_assign(last_ms: int, interval_ms: int, now_ms: int) -> bool:
    """
    Whether enough time has passed since the last assignment (KIP-1263).
    """
    return last_ms == UNKNOWN_TIME or not interval_ms or now_ms >= last_ms + interval_ms
