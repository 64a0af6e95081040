"""
The commands that install Barnabas work while it is on no package index.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    page
    for page in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("examples/**/*.md"))
    if page.name != "CHANGELOG.md"
]
FROM_AN_INDEX = re.compile(r"pip install\s+(?:-\S+\s+)*'?barnabas\b")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_install_from_the_checkout_until_barnabas_is_published(page: Path) -> None:
    """
    Messages of an installed Barnabas may name ``barnabas[extra]``: pip then adds the extra to what
    is installed, without an index that has Barnabas.
    """
    assert [] == FROM_AN_INDEX.findall(page.read_text())
