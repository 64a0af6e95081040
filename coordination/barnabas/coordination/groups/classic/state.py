"""
The states of a classic group, and which may follow which.

::

                    first join                      all have joined, or time is up
        Empty ---------------------> PreparingRebalance ---------------------> CompletingRebalance
          ^                             |   ^   ^                                 |        |
          |      the last member left   |   |   |   a member joins, leaves, fails |        |
          +-----------------------------+   |   +---------------------------------+        |
                                            |                                              |
                                            +------------------ Stable <-------------------+
                                              the same                  the leader's sync

Every state may become Dead, when the group is unloaded. The answer of each state to each request is
a table in ``tests/server/groups/test_group_requests.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final


class GroupState(Enum):
    """
    The state of a classic group, named as on the wire (Kafka's ``ClassicGroupState``).
    """

    EMPTY = "Empty"
    """
    The group has no members, and exists for its offsets.
    """

    PREPARING_REBALANCE = "PreparingRebalance"
    """
    JoinGroups are parked until every member has sent one.
    """

    COMPLETING_REBALANCE = "CompletingRebalance"
    """
    A generation has begun; SyncGroups are parked until the leader sends the assignment.
    """

    STABLE = "Stable"
    """
    The generation has its assignment.
    """

    DEAD = "Dead"
    """
    This broker does not coordinate the group any more.
    """


TRANSITIONS: Final[Mapping[GroupState, frozenset[GroupState]]] = {
    GroupState.EMPTY: frozenset({GroupState.PREPARING_REBALANCE, GroupState.DEAD}),
    GroupState.PREPARING_REBALANCE: frozenset(
        {GroupState.COMPLETING_REBALANCE, GroupState.EMPTY, GroupState.DEAD}
    ),
    GroupState.COMPLETING_REBALANCE: frozenset(
        {GroupState.STABLE, GroupState.PREPARING_REBALANCE, GroupState.DEAD}
    ),
    GroupState.STABLE: frozenset({GroupState.PREPARING_REBALANCE, GroupState.DEAD}),
    GroupState.DEAD: frozenset({GroupState.DEAD}),
}
"""
From each state, the states that may follow it.
"""
