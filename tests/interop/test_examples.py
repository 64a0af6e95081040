"""
``examples/``, as a user runs them: with the wheel, in a fresh environment.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.interop.conftest import needs_program
from tests.support.kafka_jars import VERSION, require_java
from tests.support.maven import PrerequisiteMissing
from tests.support.wheel import ROOT, environment, plain_wheel, variables

pytestmark = pytest.mark.prove

EXAMPLES = ROOT / "examples"
PATIENCE = 300


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """
    The programs of an environment with the wheel, its extra, and what the examples in Python need.
    """
    wheel = plain_wheel(tmp_path_factory.mktemp("wheel"))
    required = (EXAMPLES / "pytest" / "requirements.txt").read_text().split()
    others = [name for name in required if name != "barnabas"]
    return environment(tmp_path_factory.mktemp("venv"), f"{wheel}[http]", *others)


def run(folder: Path, *command: str | Path, program: Path | None = None) -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        env=variables() | ({} if program is None else {"BARNABAS": str(program)}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert 0 == done.returncode, done.stdout[-4000:]
    return done.stdout


def prepare(folder: Path, *command: str) -> None:
    try:
        run(folder, *command)
    except AssertionError as error:
        raise PrerequisiteMissing(f"{' '.join(command)}: {error}") from error


def copy(name: str, folder: Path) -> Path:
    """
    An example in a folder into which it may build.
    """
    generated = shutil.ignore_patterns("node_modules", "target", "__pycache__", ".pytest_cache")
    return Path(shutil.copytree(EXAMPLES / name, folder / name, ignore=generated))


def test_python_examples_pass_in_four_processes(programs: Path, tmp_path: Path) -> None:
    folder = copy("pytest", tmp_path)

    said = run(folder, programs / "python", "-m", "pytest", "-n", "4", "-W", "ignore")

    assert "8 passed" in said, said


def test_java_examples_pass(programs: Path, tmp_path: Path) -> None:
    require_java()
    needs_program("mvn")
    folder = copy("java", tmp_path)
    prepare(folder, "mvn", "-q", "-B", "test-compile")

    said = run(folder, "mvn", "-B", "test", program=programs / "barnabas")

    assert "Tests run: 3, Failures: 0, Errors: 0, Skipped: 0" in said, said
    assert f"<version>{VERSION}</version>" in (folder / "pom.xml").read_text()


def test_node_examples_pass(programs: Path, tmp_path: Path) -> None:
    needs_program("node")
    needs_program("npm")
    folder = copy("node", tmp_path)
    prepare(folder, "npm", "install", "--silent", "--no-package-lock", "--no-audit")

    said = run(folder, "npm", "test", program=programs / "barnabas")

    assert "pass 3" in said, said
    assert "fail 0" in said, said
