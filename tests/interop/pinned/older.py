"""
Earlier versions of Barnabas, from the history of the repository.
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Final

import pytest

from tests.interop.pinned.directory import ARCHIVES
from tests.support.broker_process import Barnabas
from tests.support.commands import output_of

ROOT: Final = Path(__file__).parents[3]
PACKAGES: Final = ("protocol", "storage", "coordination", "server")

COMMITS: Final = {
    "first-broker": "e58aa670e8f50cc4f8f8dabe9ee9374854c1ba37",
    "classic-groups-only": "8b840ac06fa56a78319665ee8a8b38c9594c7c2c",
}
"""
A broker of the first day, and the last one that knows nothing of the groups of KIP-848, KIP-932 and
KIP-1071.
"""
RELEASES: Final = sorted(path.name.removesuffix(".tar.xz") for path in ARCHIVES.glob("*.tar.xz"))
"""Each is the commit that pinned its directory."""


def unpack(version: str, target: Path) -> Path:
    """
    The source of a version of ``COMMITS`` or ``RELEASES``; the test is skipped where the history of
    the repository is not.
    """
    commit = (
        COMMITS.get(version)
        or _git("log", "-1", "--format=%H", "--", str(ARCHIVES / f"{version}.tar.xz"))
        .decode()
        .strip()
    )
    # The first versions have no folder for coordination.
    there = set(_git("ls-tree", "--name-only", commit).decode().split())
    packages = [package for package in PACKAGES if package in there]
    with tarfile.open(fileobj=io.BytesIO(_git("archive", commit, *packages))) as archive:
        archive.extractall(target, filter="data")
    return target


def older(source: Path, broker: Barnabas, directory: Path) -> Barnabas:
    """
    A broker of an earlier version on a copy of the directory of *broker*, which is stopped.
    """
    shutil.copytree(broker.data, directory / "data")
    path = os.pathsep.join(str(source / package) for package in PACKAGES)
    environment = {"PYTHONPATH": path}
    program = "import barnabas.server; print(barnabas.server.__file__)"
    used = output_of(sys.executable, "-c", program, env=os.environ | environment)
    assert used.startswith(str(source)), f"{used} is not of the earlier version"
    return Barnabas(directory, settings=broker.settings, environment=environment)


def _git(*arguments: str) -> bytes:
    try:
        done = subprocess.run(
            ["git", "-C", str(ROOT), *arguments], capture_output=True, timeout=60, check=False
        )
    except FileNotFoundError:
        pytest.skip("there is no git here, for the source of earlier versions")
    if done.returncode or not done.stdout:
        # A clone may be shallow, and a source distribution has no history: nothing is wrong there.
        pytest.skip("the history with the source of earlier versions is not here")
    return done.stdout
