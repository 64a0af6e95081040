"""
Examples of the documentation, run as they stand.
"""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

_IS_INSTALLED = bool(entry_points(group="pytest11", name="barnabas"))
PLUGIN = [] if _IS_INSTALLED else ["-p", "barnabas.testing.pytest_plugin"]
"""
An environment that was installed before the plugin was written does not know it.
"""


def run_example(example: str, folder: Path) -> None:
    """
    Run a program with Python, and tests with pytest.

    Raises:
        AssertionError: it fails.
    """
    script = folder / "test_example.py"
    script.write_text(example)
    (folder / "pytest.ini").write_text("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    is_test = "def test_" in example
    command = ["-m", "pytest", "-q", "--strict-markers", *PLUGIN] if is_test else []

    done = subprocess.run(
        [sys.executable, "-W", "ignore", *command, str(script)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert 0 == done.returncode, done.stdout[-3000:] + done.stderr[-3000:]
