"""
The wheel of this project, and environments in which it is installed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

from tests.support.maven import PrerequisiteMissing

ROOT = Path(__file__).parents[2]


def plain_wheel(folder: Path) -> Path:
    """
    The wheel of plain Python, as pip builds it.

    Raises:
        PrerequisiteMissing: the package index that has the build tools cannot be reached.
    """
    return built_wheel(ROOT, folder, BARNABAS_COMPILE="0")


def built_wheel(source: Path, folder: Path, **variables: str) -> Path:
    """
    The wheel that pip builds from *source*, with these variables of the environment.

    Raises:
        PrerequisiteMissing: the package index that has the build tools cannot be reached.
    """
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", str(folder)]
    done = subprocess.run(
        [*command, str(source)],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if done.returncode:
        raise PrerequisiteMissing(f"pip cannot build a wheel: {done.stderr[-200:]}")
    (wheel,) = folder.glob("*.whl")
    return wheel


def variables() -> dict[str, str]:
    """
    The variables of the environment for a process with packages of its own: without those under
    test, which ``make test COMPILED=1`` puts on ``PYTHONPATH``.
    """
    return {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}


def environment(folder: Path, *packages: str) -> Path:
    """
    The folder with the programs of a fresh environment, with nothing in it but *packages* and what
    they need.

    Raises:
        PrerequisiteMissing: the package index cannot be reached.
    """
    venv.create(folder, with_pip=True)
    programs = folder / "bin"
    install = [str(programs / "python"), "-m", "pip", "install", "--quiet", *packages]
    done = subprocess.run(install, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        raise PrerequisiteMissing(f"pip cannot install {packages}: {done.stderr[-200:]}")
    return programs
