"""
Open descriptors of this process.
"""

from __future__ import annotations

import os
from pathlib import Path


def open_descriptors(directory: Path) -> int:
    """
    The number of open descriptors of *directory* and of files below it, including deleted ones.

    Other descriptors vary while clients of earlier tests end in their threads.
    """
    below = f"{directory.resolve()}/"
    return sum(f"{_target(name)}/".startswith(below) for name in os.listdir("/proc/self/fd"))


def _target(name: str) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{name}")
    except FileNotFoundError:
        return ""
