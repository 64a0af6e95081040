"""
The documentation as a site.
"""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.support.commands import output_of

ROOT: Final = Path(__file__).parents[2]
SITE: Final = ROOT / "docs" / "site"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """
    The built site. A warning, such as a link to nowhere, is an error.
    """
    pytest.importorskip("furo", reason="the documentation's packages are not installed")
    built = tmp_path_factory.mktemp("site")
    options = ["-q", "-W", "--keep-going", "-b", "html"]
    output_of(sys.executable, "-m", "sphinx", *options, "-c", SITE, ROOT, built, seconds=300)
    return built


def test_every_page_is_in_the_menu(site: Path) -> None:
    sections = runpy.run_path(str(SITE / "conf.py"))["SECTIONS"]
    listed = {page for pages in sections.values() for page in pages}
    written = {f"docs/{path.stem}" for path in (ROOT / "docs").glob("*.md")}

    assert set() == written - listed
    assert all((site / f"{page}.html").exists() for page in listed)


def test_site_begins_with_the_readme(site: Path) -> None:
    page = (site / "index.html").read_text()

    assert "A Kafka for tests, laptops and small servers" in page
    assert 'src="_images/web-partition.png"' in page
    assert 'href="docs/tutorial.html"' in page
    assert "<picture>" not in page


def test_python_api_page_contains_the_docstrings(site: Path) -> None:
    page = re.sub(r"<[^>]+>", "", (site / "docs" / "site" / "python-api.html").read_text())

    for name in ("Broker", "Topic", "ManualClock", "scan", "archive", "replay"):
        assert name in page
    assert "an option is unknown, or its value is not acceptable" in page
