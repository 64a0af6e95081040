"""
Each list of the packages names all of them: one that is missing from the image's context, say, is
missed by the commands that need it.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import compiled_copy

from tests.mutations import overlay

ROOT = Path(__file__).parents[2]
PACKAGES = {path.parent.name for path in ROOT.glob("*/barnabas")}


def pyproject(*keys: str) -> Any:
    found: Any = tomllib.loads((ROOT / "pyproject.toml").read_text())
    for key in keys:
        found = found[key]
    return found


def test_context_of_the_image_has_all_packages() -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()

    assert {f"!{name}/barnabas" for name in PACKAGES} <= set(lines)


def test_wheels_and_the_compiled_copy_have_all_packages() -> None:
    build = pyproject("tool", "hatch", "build")

    assert PACKAGES == set(build["dev-mode-dirs"]) == set(compiled_copy.FOLDERS)
    assert PACKAGES == set(build["targets"]["wheel"]["sources"])


def test_all_packages_are_checked_and_mutated() -> None:
    assert set(pyproject("tool", "mypy", "files")) >= PACKAGES
    assert PACKAGES == set(pyproject("tool", "ruff", "src")) == set(overlay._PACKAGES)
