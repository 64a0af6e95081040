"""
The page about tools around a broker says what the tests run.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from tests.interop.ecosystem.tools import TOOLS, Kind, Tool
from tests.support.kafka_jars import VERSION
from tests.support.some import some

ROOT: Final = Path(__file__).parent.parent
PAGE: Final = (ROOT / "docs" / "ecosystem.md").read_text()
ROWS: Final = {
    cells[0]: cells[1:]
    for line in PAGE.splitlines()
    if line.startswith("| ")
    for cells in [[cell.strip() for cell in line.strip("|").split(" | ")]]
}


@pytest.mark.parametrize("tool", TOOLS, ids=[tool.id for tool in TOOLS])
def test_a_row_has_the_version_and_the_guarantee_of_the_test(tool: Tool) -> None:
    version, _, result, _ = ROWS[tool.name]

    assert (tool.version, tool.guarantee.value) == (version, result)
    if tool.kind is not Kind.PROGRAM:
        assert version in tool.requirements[0]


def test_the_tools_of_apache_kafka_have_the_version_of_its_jars() -> None:
    for name, (version, *_) in some(ROWS.items()):
        if "Kafka Connect" in name or "MirrorMaker" in name or "Kafka Streams" in name:
            assert VERSION == version


def test_every_test_that_the_page_names_is_there() -> None:
    for path in some(re.findall(r"`(tests/[\w/.]+)`", PAGE)):
        assert (ROOT / path).exists(), path


def test_every_tool_has_a_program() -> None:
    folder = ROOT / "tests" / "interop" / "ecosystem" / "programs"

    assert {tool.program for tool in TOOLS} == {
        path.name for path in folder.iterdir() if path.is_file()
    }
