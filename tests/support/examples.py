"""
Examples of the documentation, run as they stand.
"""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from tests.support.commands import output_of, run

SETTINGS = "[pytest]\nasyncio_default_fixture_loop_scope = function\n"
_IS_INSTALLED = bool(entry_points(group="pytest11", name="barnabas"))
PLUGIN = [] if _IS_INSTALLED else ["-p", "barnabas.testing.pytest_plugin"]
"""
An environment that was installed before the plugin was written does not know it.
"""


def run_pytest(
    folder: Path, tests: str, *options: str, ini: str = "", **more: Any
) -> subprocess.CompletedProcess[str]:
    """
    Run pytest in a process on a file with the text *tests*; *more* is that of ``commands.run``.
    """
    (folder / "test_it.py").write_text(tests)
    (folder / "pytest.ini").write_text(SETTINGS + ini)
    command = [sys.executable, "-m", "pytest", "-q", "--color=no", "-p", "no:cacheprovider"]
    return run(*command, *PLUGIN, *options, cwd=folder, **more)


def run_example(example: str, folder: Path) -> None:
    """
    Run a program with Python, and tests with pytest.

    Raises:
        AssertionError: it fails.
    """
    script = folder / "test_example.py"
    script.write_text(example)
    (folder / "pytest.ini").write_text(SETTINGS)
    is_test = "def test_" in example
    command = ["-m", "pytest", "-q", "--strict-markers", *PLUGIN] if is_test else []
    output_of(sys.executable, "-W", "ignore", *command, script, cwd=folder)
