"""
What tests of real disks need.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.interop.disks.machine import FILE_SYSTEMS
from tests.support.maven import PrerequisiteMissing

ROOT: Final = Path(__file__).parents[3]


def require_disks() -> None:
    """
    Raises:
        PrerequisiteMissing: this machine has no file systems to make and to mount.
    """
    if lack := _missing():
        if "GITHUB_ACTIONS" in os.environ:
            pytest.skip(lack)  # Its runners are no root.
        raise PrerequisiteMissing(lack)


def _missing() -> str | None:
    if sys.platform != "linux" or os.geteuid() != 0:
        return "loop devices need root on Linux"
    for device in ("/dev/fuse", "/dev/loop-control"):
        if not os.access(device, os.R_OK | os.W_OK):
            return f"no access to {device}"
    for kind in FILE_SYSTEMS.values():
        if shutil.which(kind.make[0]) is None:
            return f"no {kind.make[0]} (on Debian: e2fsprogs, xfsprogs and btrfs-progs)"
    return None
