"""
Programs that end by themselves.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, Final

BARNABAS: Final = (sys.executable, "-m", "barnabas.server")
"""
The command ``barnabas`` of this environment.
"""


def run(
    *command: str | Path, seconds: float = 120, **options: Any
) -> subprocess.CompletedProcess[str]:
    """
    Run a program to its end, whether it succeeds or not.
    """
    return subprocess.run(
        command, capture_output=True, text=True, timeout=seconds, check=False, **options
    )


def output_of(*command: str | Path, seconds: float = 120, **options: Any) -> str:
    """
    The standard output of a program.

    Raises:
        AssertionError: it fails.
    """
    done = run(*command, seconds=seconds, **options)
    said = done.stdout[-2000:] + done.stderr[-2000:]
    assert 0 == done.returncode, f"{' '.join(map(str, command))}: {said}"
    return done.stdout
