"""
Apache Kafka's command-line tools print the same of Barnabas as they do of Apache Kafka.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.interop.conftest import needs_program
from tests.interop.tools.chapters import PARTS
from tests.interop.tools.known import KNOWN, class_of
from tests.interop.tools.toolbox import TOOLS
from tests.interop.tools.tour import Tour, differences
from tests.support.some import some

pytestmark = pytest.mark.prove

PAGE: Final = Path(__file__).parents[3] / "docs" / "tools.md"


@pytest.fixture(scope="module")
def tour(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tour]:
    needs_program("kcat")
    tour = Tour(tmp_path_factory.mktemp("tour"))
    try:
        tour.start()
        yield tour
    finally:
        tour.close()


@pytest.mark.parametrize("name", PARTS)
def test_tools_print_the_same(tour: Tour, name: str) -> None:
    """
    Status, standard output and standard error of every run.
    """
    kafka, barnabas = tour.visit(name)

    classes = [(found, class_of(found)) for found in differences(kafka, barnabas)]
    new = [found for found, known in classes if known is None]
    for found in new:
        print(found, end="\n\n")
    print(f"{len(kafka)} runs; known differences: {dict(Counter(c for _, c in classes))}")
    assert kafka
    assert not new, f"{len(new)} differences in {len(kafka)} runs"


def test_every_known_difference_of_the_tools_occurs(tour: Tour) -> None:
    """
    The table has just those that the tour meets, each with its reason.
    """
    rows = re.findall(
        r"^\| `(?!kafka-|kcat)([a-z-]+)` \|.*\|(.*)\|$", PAGE.read_text(), re.MULTILINE
    )

    seen = {class_of(found) for name in PARTS for found in differences(*tour.visit(name))}

    assert set(KNOWN) == seen - {None}
    assert sorted(KNOWN) == sorted(name for name, _ in rows)
    assert all(len(reason.split()) > 5 for _, reason in some(rows))


def test_every_tool_is_used_and_described(tour: Tour) -> None:
    """
    A tool of which the page tells is one of which the tour knows what it does, and the reverse.
    """
    described = re.findall(r"^\| `(k[a-z0-9-]+)` \|", PAGE.read_text(), re.MULTILINE)

    used = {entry.command[0] for name in PARTS for entry in tour.visit(name)[0]}

    assert sorted(used) == sorted({*TOOLS, "kcat"})
    assert sorted(used) == sorted(described)
