"""
Faults that tests put into brokers.
"""

from __future__ import annotations

import pytest

from tests.interop.histories.faults import FAULTS as OF_BROKERS
from tests.interop.sweep.faults import FAULTS as OF_REQUESTS
from tests.mutations.drawing import ROOT
from tests.mutations.overlay import Change


@pytest.mark.parametrize(
    "change",
    [change for fault in (*OF_BROKERS, *OF_REQUESTS) for change in fault.changes],
    ids=lambda change: change.before.strip()[:40],
)
def test_text_that_a_fault_replaces_is_in_the_product(change: Change) -> None:
    assert change.apply((ROOT / change.path).read_bytes())
