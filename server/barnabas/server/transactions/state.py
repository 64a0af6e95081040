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

A producer of the second protocol version may abort what it has not begun: PREPARE_ABORT may then
follow EMPTY and the complete states as well (KIP-890). Source: Kafka's ``TransactionState``.
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
    It has a producer, who has not begun a transaction.
    """

    ONGOING = (1, "Ongoing")
    """
    A transaction has begun, and partitions belong to it.
    """

    PREPARE_COMMIT = (2, "PrepareCommit")
    """
    It is decided that the transaction is committed; its partitions are to be told.
    """

    PREPARE_ABORT = (3, "PrepareAbort")
    """
    It is decided that the transaction is aborted; its partitions are to be told.
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
    Nobody has used the id for long: it is forgotten.
    """

    PREPARE_EPOCH_FENCE = (7, "PrepareEpochFence")
    """
    Another producer has come, and the transaction of the one before is about to be aborted. Apache
    Kafka never writes it to the log.
    """

    def __init__(self, number: int, title: str) -> None:
        self.number = number
        self.title = title

    @property
    def is_complete(self) -> bool:
        """
        Whether the last transaction has ended, one way or the other.
        """
        return self in (TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)

    @property
    def is_prepared(self) -> bool:
        """
        Whether a transaction is decided, and its markers are not all written yet.
        """
        return self in (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)

    @property
    def can_expire(self) -> bool:
        """
        Whether an id that nobody uses may be forgotten.
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
Of each state, the states that it may follow.
"""
