"""
``docs/testing.md``: the examples run as they stand, and the tables say what the code has.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import barnabas.testing as package
from barnabas.testing.defaults import DEFAULTS, IN_MEMORY
from tests.testing.test_pytest_plugin import PLUGIN

PAGE = (Path(__file__).parents[2] / "docs" / "testing.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.interop
@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_runs(number: int, tmp_path: Path) -> None:
    """
    A program by Python, tests by pytest.
    """
    example = EXAMPLES[number]
    script = tmp_path / "test_example.py"
    script.write_text(example)
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\nasyncio_default_fixture_loop_scope = function\n"
    )
    is_test = "def test_" in example
    command = ["-m", "pytest", "-q", "--strict-markers", *PLUGIN] if is_test else []

    done = subprocess.run(
        [sys.executable, "-W", "ignore", *command, str(script)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert 0 == done.returncode, done.stdout[-3000:] + done.stderr[-3000:]


def test_the_page_begins_with_ten_lines_of_pytest() -> None:
    assert PAGE.split("\n\n", 1)[1].startswith("```python\n")
    assert len([line for line in EXAMPLES[0].splitlines() if line]) <= 10
    assert "def test_" in EXAMPLES[0]


def test_every_default_is_on_the_page() -> None:
    table = PAGE[PAGE.index("| option | in a test |") :].split("\n\n", 1)[0]

    assert set(re.findall(r"`([a-z.]+)`", table)) == {*DEFAULTS, *IN_MEMORY}


def test_every_error_is_on_the_page() -> None:
    errors = {
        name
        for name in package.__all__
        if isinstance(getattr(package, name), type)
        and issubclass(getattr(package, name), package.BrokerError)
    }

    assert errors <= set(re.findall(r"`(\w+)`", PAGE[PAGE.index("## Errors") :]))
