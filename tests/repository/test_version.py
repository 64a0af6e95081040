"""
One place states the version.
"""

from __future__ import annotations

import re
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Final

import pytest
from release import version_of

from barnabas.server.cli import main
from tests.support.maven import PrerequisiteMissing

ROOT: Final = Path(__file__).parents[2]
VERSION: Final = version_of(ROOT)
PLACE: Final = "pyproject.toml"
FIRST_PAGE: Final = "README.md"
"""Readers look for the version here. It must be the one of ``PLACE``."""
RECORDS: Final = {"CHANGELOG.md", "docs/performance.md"}
"""Pages about a version in the past: what it changed, and how fast it was."""


def files() -> list[str]:
    """
    List the text files under version control that contain the version, except tests.
    """
    command = ["git", "grep", "-I", "-l", "-F", VERSION, "--", ".", ":!tests"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise PrerequisiteMissing(f"no git repository to search: {done.stderr.strip()}")
    return done.stdout.splitlines()


def test_only_pyproject_and_the_readme_state_the_version() -> None:
    stating = re.compile(rf"(barnabas|version).*(?<![\d.]){re.escape(VERSION)}(?![\d.])", re.I)
    found = {name for name in files() if stating.search((ROOT / name).read_text())}

    assert {PLACE, FIRST_PAGE} == found - RECORDS


def test_the_installed_version_is_the_one_of_pyproject() -> None:
    assert VERSION == version("barnabas")


def test_the_command_prints_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--version"])

    assert f"barnabas {VERSION} " in capsys.readouterr().out
