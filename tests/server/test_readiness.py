from __future__ import annotations

from barnabas.server.readiness import BrokerState


def test_states_have_the_numbers_of_kafka() -> None:
    """
    The numbers of ``BrokerState``, which are exported in the metric of the same name.
    """
    assert {
        "NOT_RUNNING": 0,
        "STARTING": 1,
        "RECOVERY": 2,
        "RUNNING": 3,
        "PENDING_CONTROLLED_SHUTDOWN": 6,
        "SHUTTING_DOWN": 7,
    } == {state.name: state.value for state in BrokerState}
