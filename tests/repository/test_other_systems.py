"""
Compiled wheels for systems that no test runs on.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.support.compiled import ROOT, compilable

HOOK: Final = ast.parse((ROOT / "hatch_build.py").read_text())


def constant(name: str) -> list[str]:
    """
    Read a list of the build hook, whose own imports exist only in a build.
    """
    (value,) = (
        node.value
        for node in HOOK.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name
    )
    found: list[str] = ast.literal_eval(value)
    return found


@pytest.mark.prove
@pytest.mark.parametrize("system", ["darwin", "win32"])
def test_the_type_checker_of_mypyc_accepts_compiled_modules(system: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mypy", "--platform", system, "--follow-imports=silent"]
    command += [*constant("OFF_LINUX"), f"--cache-dir={tmp_path}", *map(str, compilable())]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert 0 == done.returncode, done.stdout + done.stderr
