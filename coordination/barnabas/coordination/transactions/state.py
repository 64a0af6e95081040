"""
The states of a transactional id, and which of them follow which.

::

                  InitProducerId            AddPartitionsToTxn          EndTxn
       (new) --------------------> EMPTY ----------------------> ONGOING
                                     ^                           |     |
                      InitProducerId |             commit +------+     +------+ abort, fence
                                     |                    v                   v
                                     |              PREPARE_COMMIT      PREPARE_ABORT
                                     |                    |                   |      markers written
                                     |                    v                   v
                                     +----------- COMPLETE_COMMIT      COMPLETE_ABORT

A TV2 producer may abort a transaction that has not begun: PREPARE_ABORT may then follow EMPTY and
the complete states as well (KIP-890). Source: Kafka's ``TransactionState``.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final


class TransactionState(Enum):
    """
    The state of a transactional id: its number in the log, and its name in answers.
    """

    EMPTY = (0, "Empty")
    """
    The id has a producer, which has not begun a transaction.
    """

    ONGOING = (1, "Ongoing")
    """
    A transaction has begun, and has partitions.
    """

    PREPARE_COMMIT = (2, "PrepareCommit")
    """
    The commit is decided; not all of its markers are written.
    """

    PREPARE_ABORT = (3, "PrepareAbort")
    """
    The abort is decided; not all of its markers are written.
    """

    COMPLETE_COMMIT = (4, "CompleteCommit")
    """
    Every partition has the marker of the commit.
    """

    COMPLETE_ABORT = (5, "CompleteAbort")
    """
    Every partition has the marker of the abort.
    """

    DEAD = (6, "Dead")
    """
    The id was idle for long, and is removed.
    """

    PREPARE_EPOCH_FENCE = (7, "PrepareEpochFence")
    """
    A new producer has fenced the previous one, whose transaction is aborted next. Apache Kafka
    never writes this state to the log.
    """

    def __init__(self, number: int, title: str) -> None:
        self.number = number
        self.title = title

    @property
    def is_complete(self) -> bool:
        """
        Whether the last transaction is committed or aborted.
        """
        return self in (TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)

    @property
    def is_prepared(self) -> bool:
        """
        Whether the end of the transaction is decided, and not all of its markers are written.
        """
        return self in (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)

    @property
    def can_expire(self) -> bool:
        """
        Whether an idle id may be removed.
        """
        return self is TransactionState.EMPTY or self.is_complete


S = TransactionState

BY_NUMBER: Final[Mapping[int, TransactionState]] = {state.number: state for state in S}
BY_TITLE: Final[Mapping[str, TransactionState]] = {state.title: state for state in S}

PREVIOUS: Final[Mapping[TransactionState, frozenset[TransactionState]]] = {
    S.EMPTY: frozenset({S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT}),
    S.ONGOING: frozenset({S.ONGOING, S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT}),
    S.PREPARE_COMMIT: frozenset({S.ONGOING}),
    S.PREPARE_ABORT: frozenset({S.ONGOING, S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT}),
    S.COMPLETE_COMMIT: frozenset({S.PREPARE_COMMIT}),
    S.COMPLETE_ABORT: frozenset({S.PREPARE_ABORT}),
    S.DEAD: frozenset({S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT}),
    S.PREPARE_EPOCH_FENCE: frozenset(),
}
"""
For each state, the states that it may follow.
"""
