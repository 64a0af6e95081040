"""
The C programs beside this file, compiled for one run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent


def compiler() -> str | None:
    """
    The command of a C compiler, if there is one.
    """
    return os.environ.get("CC") or shutil.which("gcc") or shutil.which("cc")


def compiled(name: str, directory: Path, link: Sequence[str] = ()) -> Path | None:
    """
    The program made of ``name.c``, in *directory*; None if there is no compiler.
    """
    command = compiler()
    if command is None:
        return None
    program = directory / name
    source = str(HERE / f"{name}.c")
    subprocess.run([command, "-O2", "-o", str(program), source, *link], check=True)
    return program
