"""
Tools as their users install them, once, in a cache directory of the user.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final

import pytest

from tests.interop.conftest import needs_program
from tests.interop.ecosystem.tools import Kind, Tool
from tests.support.kafka_jars import QUICK, require_java
from tests.support.maven import PrerequisiteMissing, alone, cache, jars
from tests.support.wheel import environment

PROGRAMS: Final = Path(__file__).parent / "programs"
PATIENCE_S: Final = 600
_OPENED: Final = ("--add-opens=java.base/java.util=ALL-UNNAMED",)
"""What Flink looks into."""
_SYSTEM_PATH: Final = f"{os.environ.get('PATH', '')}:/usr/sbin"


def command(tool: Tool) -> list[str]:
    """
    The command that runs the tool's program, but for its arguments.

    Raises:
        PrerequisiteMissing: it is not there yet, and the registry cannot be reached.
    """
    return _COMMANDS[tool.kind](tool)


def _python(tool: Tool) -> list[str]:
    if sys.version_info[:2] > tool.newest_python:
        pytest.skip(f"{tool.name} {tool.version} is not there for this Python")
    folder = _installed(tool, sys.version, lambda fresh: environment(fresh, *tool.requirements))
    return [str(folder / "bin" / "python"), str(PROGRAMS / tool.program)]


def _installed(tool: Tool, further: str, install: Callable[[Path], object]) -> Path:
    """
    The folder into which that tool was installed.

    Args:
        further: what it depends on beside its requirements.
    """
    text = "\n".join((*tool.requirements, further))
    root = cache("ecosystem")
    folder = root / f"{tool.id}-{sha256(text.encode()).hexdigest()[:16]}"
    complete = folder.with_suffix(".complete")
    with alone(root):
        if not complete.exists():
            shutil.rmtree(folder, ignore_errors=True)
            install(folder)
            complete.touch()
    return folder


def _node(tool: Tool) -> list[str]:
    def install(fresh: Path) -> None:
        fresh.mkdir()
        (fresh / "package.json").write_text('{"private": true, "type": "module"}')
        run(["npm", "install", "--silent", "--no-audit", *tool.requirements], fresh)

    needs_program("node")
    needs_program("npm")
    folder = _installed(tool, "", install)
    # A module finds packages beside it only.
    shutil.copy(PROGRAMS / tool.program, folder)
    return ["node", str(folder / tool.program)]


def run(steps: Sequence[str], folder: Path) -> None:
    """
    Run a command that fetches something.

    Raises:
        PrerequisiteMissing: it fails.
    """
    done = subprocess.run(
        steps, cwd=folder, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    if done.returncode:
        raise PrerequisiteMissing(f"{' '.join(steps)}: {(done.stderr or done.stdout)[-300:]}")


def _go(tool: Tool) -> list[str]:
    source = PROGRAMS / tool.program

    def install(fresh: Path) -> None:
        fresh.mkdir()
        shutil.copy(source, fresh)
        run(["go", "mod", "init", "copier"], fresh)
        run(["go", "get", *tool.requirements], fresh)
        run(["go", "mod", "tidy"], fresh)
        run(["go", "build", "-o", "copier"], fresh)

    needs_program("go")
    return [str(_installed(tool, source.read_text(), install) / "copier")]


def _java(tool: Tool) -> list[str]:
    def install(fresh: Path) -> None:
        fresh.mkdir()
        versions = dict(each.rsplit(":", 1) for each in tool.requirements)
        jars(fresh, "libs", versions)

    require_java()
    libraries = _installed(tool, "", install) / "libs"
    return ["java", *QUICK, *_OPENED, "-cp", f"{libraries}/*", str(PROGRAMS / tool.program)]


def _rust(tool: Tool) -> list[str]:
    source = PROGRAMS / tool.program

    def install(fresh: Path) -> None:
        run(["cargo", "init", "--vcs", "none", "--name", "copier", str(fresh)], fresh.parent)
        run(["cargo", "add", *tool.requirements], fresh)
        run(["cargo", "add", "tokio", "--features", "full"], fresh)
        shutil.copy(source, fresh / "src" / "main.rs")
        run(["cargo", "build"], fresh)

    needs_program("cargo")
    folder = _installed(tool, source.read_text(), install)
    return [str(folder / "target" / "debug" / "copier")]


def _program(tool: Tool) -> list[str]:
    """
    The command of a program that the system has, and that ours starts.
    """
    name, package = tool.requirements
    if shutil.which(name, path=_SYSTEM_PATH) is None:
        raise PrerequisiteMissing(f"there is no {name} here (on Debian: apt install {package})")
    return [sys.executable, str(PROGRAMS / tool.program)]


_COMMANDS: Final[Mapping[Kind, Callable[[Tool], list[str]]]] = {
    Kind.PYTHON: _python,
    Kind.NODE: _node,
    Kind.PROGRAM: _program,
    Kind.GO: _go,
    Kind.JAVA: _java,
    Kind.RUST: _rust,
}
