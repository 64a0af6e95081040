"""
States of transactional ids, as Kafka's TransactionState numbers and names them.
"""

from __future__ import annotations

from barnabas.coordination.transactions.state import TransactionState


def test_states_have_the_numbers_and_names_of_kafka() -> None:
    expected = {
        (0, "Empty"),
        (1, "Ongoing"),
        (2, "PrepareCommit"),
        (3, "PrepareAbort"),
        (4, "CompleteCommit"),
        (5, "CompleteAbort"),
        (6, "Dead"),
        (7, "PrepareEpochFence"),
    }

    assert expected == {(state.number, state.title) for state in TransactionState}
