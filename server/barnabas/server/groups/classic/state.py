"""
The states of a classic group, and which may follow which.

::

                    first join                      all have joined, or time is up
        Empty ---------------------> PreparingRebalance ---------------------> CompletingRebalance
          ^                             |   ^   ^                                 |        |
          |      nobody is left         |   |   |   a member joins, leaves, fails |        |
          +-----------------------------+   |   +---------------------------------+        |
                                            |                                              |
                                            +------------------ Stable <-------------------+
                                              the same                  the leader's sync

Every state may become Dead, when the group is unloaded. What each state answers to each request is
the table in ``tests/server/groups/test_group_requests.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final


class GroupState(Enum):
    """
    Where a classic group is, named as on the wire (Kafka's ``ClassicGroupState``).
    """

    EMPTY = "Empty"
    """
    No members. The group stays for the sake of its offsets, or was only ever made for them.
    """

    PREPARING_REBALANCE = "PreparingRebalance"
    """
    Joins are parked until every member has sent one.
    """

    COMPLETING_REBALANCE = "CompletingRebalance"
    """
    A generation has begun; syncs are parked until the leader sends the assignment.
    """

    STABLE = "Stable"
    """
    Every member has its assignment, or may fetch it.
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
