from __future__ import annotations

import re
from pathlib import Path

import pytest

import barnabas.testing as package
from barnabas.testing.defaults import DEFAULTS, IN_MEMORY
from tests.support.examples import run_example

PAGE = (Path(__file__).parents[2] / "docs" / "testing.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.interop
@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_documented_example_runs(number: int, tmp_path: Path) -> None:
    run_example(EXAMPLES[number], tmp_path)


def test_documentation_page_begins_with_ten_lines_of_pytest() -> None:
    assert PAGE.split("\n\n", 1)[1].startswith("```python\n")
    assert len([line for line in EXAMPLES[0].splitlines() if line]) <= 10
    assert "def test_" in EXAMPLES[0]


def test_documentation_page_has_every_default() -> None:
    table = PAGE[PAGE.index("| option | in a test |") :].split("\n\n", 1)[0]

    assert set(re.findall(r"`([a-z.]+)`", table)) == {*DEFAULTS, *IN_MEMORY}


def test_documentation_page_has_every_error() -> None:
    errors = {
        name
        for name in package.__all__
        if isinstance(getattr(package, name), type)
        and issubclass(getattr(package, name), package.BrokerError)
    }

    assert errors <= set(re.findall(r"`(\w+)`", PAGE[PAGE.index("## Errors") :]))
