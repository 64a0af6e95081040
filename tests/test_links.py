"""
Links between the pages of the documentation lead somewhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[1]
PAGES: Final = sorted(
    path
    for folder in (ROOT, ROOT / "docs", ROOT / "examples", *(ROOT / "protocol", ROOT / "testing"))
    for path in folder.glob("*.md")
)

_CODE: Final = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
_LINK: Final = re.compile(r"\]\(([^)\s]+)\)|(?:src|srcset|href)=\"([^\"]+)\"")
_HEADING: Final = re.compile(r"^#+ (.+)$", re.MULTILINE)
_NOT_IN_ANCHORS: Final = re.compile(r"[^\w\- ]")


def links_of(page: Path) -> Iterator[str]:
    """
    The links of *page* that do not lead to another host.
    """
    for in_text, in_markup in _LINK.findall(_CODE.sub("", page.read_text())):
        link = in_text or in_markup
        if not re.match(r"[a-z]+:", link):
            yield link


@cache
def anchors_of(page: Path) -> frozenset[str]:
    """
    The names of the headings of *page*, as GitHub makes them.
    """
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    headings = (re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", each) for each in _HEADING.findall(text))
    return frozenset(_NOT_IN_ANCHORS.sub("", each.lower()).replace(" ", "-") for each in headings)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_has_a_target(page: Path) -> None:
    wrong = []
    for link in links_of(page):
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or (anchor and anchor not in anchors_of(target)):
            wrong.append(link)

    assert [] == wrong


def test_every_page_is_reachable_from_the_readme() -> None:
    reached, waiting = set[Path](), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached or page.suffix != ".md" or not page.exists():
            continue
        reached.add(page)
        waiting += [(page.parent / link.partition("#")[0]).resolve() for link in links_of(page)]

    assert set() == {*(ROOT / "docs").glob("*.md")} - reached
