"""
The descriptors of this process.
"""

from __future__ import annotations

import os
from pathlib import Path


def open_descriptors(directory: Path) -> int:
    """
    How many there are of *directory* and of files below it, removed ones too.

    Those of other files come and go meanwhile: clients of tests before this one end in threads.
    """
    below = f"{directory.resolve()}/"
    return sum(f"{_target(name)}/".startswith(below) for name in os.listdir("/proc/self/fd"))


def _target(name: str) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{name}")
    except FileNotFoundError:
        return ""
