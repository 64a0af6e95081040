from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.interop.disks.machine import FILE_SYSTEMS
from tests.interop.disks.required import ROOT, require_disks

pytestmark = pytest.mark.prove


@pytest.mark.parametrize("name", list(FILE_SYSTEMS))
def test_records_acknowledged_after_a_failed_fsync_survive_a_power_cut(
    name: str, tmp_path: Path
) -> None:
    require_disks()

    command = [sys.executable, "-m", "tests.interop.disks.fails_once", str(tmp_path), name]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )

    assert done.returncode == 0, done.stderr
