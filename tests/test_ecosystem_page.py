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
def test_ecosystem_row_has_the_version_and_guarantee_of_its_test(tool: Tool) -> None:
    version, _, result, _ = ROWS[tool.name]

    assert (tool.version, tool.guarantee.value) == (version, result)
    if tool.kind is not Kind.PROGRAM:
        assert version in tool.requirements[0]


def test_apache_kafka_tools_have_the_version_of_their_jars() -> None:
    for name, (version, *_) in some(ROWS.items()):
        if "Kafka Connect" in name or "MirrorMaker" in name or "Kafka Streams" in name:
            assert VERSION == version


def test_every_test_named_on_the_ecosystem_page_exists() -> None:
    for path in some(re.findall(r"`(tests/[\w/.]+)`", PAGE)):
        assert (ROOT / path).exists(), path


def test_every_ecosystem_tool_has_a_program() -> None:
    folder = ROOT / "tests" / "interop" / "ecosystem" / "programs"

    assert {tool.program for tool in TOOLS} == {
        path.name for path in folder.iterdir() if path.is_file()
    }
