"""
The sweep finds faults that made requests harm others.

``BARNABAS_FAULTS=all`` adds those that take it longer.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pytest

from tests.interop.sweep.faults import FAULTS, RequestFault
from tests.interop.sweep.sweep import sweeping
from tests.mutations.overlay import Overlay

pytestmark = pytest.mark.prove

TRIES: Final = 3
"""
How much peers get while they do not read depends on the time that others take.
"""


@pytest.mark.parametrize(
    "fault",
    [each for each in FAULTS if each.is_quick or os.environ.get("BARNABAS_FAULTS") == "all"],
    ids=lambda fault: fault.name,
)
def test_sweep_finds_the_fault(
    fault: RequestFault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    overlay = Overlay(tmp_path / "overlay")
    path = os.pathsep.join([overlay.python_path, os.environ["PYTHONPATH"]])
    monkeypatch.setenv("PYTHONPATH", path)

    with overlay.changed(fault.changes):
        assert any(_finds(fault, tmp_path / f"{number}") for number in range(TRIES))


def _finds(fault: RequestFault, directory: Path) -> bool:
    try:
        with sweeping(directory, {}) as sweep:
            sweep.check(fault.api, fault.way)
    except (AssertionError, TimeoutError) as error:
        print(error)
        return True
    return False
