"""
The documentation as a site (Sphinx): ``make docs`` builds it into ``build/site``.

The pages are the Markdown files of the repository as they stand, read from its root, so that each
link between them leads to the same place here and in a checkout. This file adds what a checkout
does not need: the order of the pages, and the reference of the Python API.
"""

from __future__ import annotations

import re
import shutil
from importlib.metadata import version as version_of
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sphinx.application import Sphinx

ROOT: Final = Path(__file__).parents[2]

project = "Barnabas"
copyright = "the authors of Barnabas, Apache License 2.0"
version = release = version_of("barnabas")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
]
root_doc = "README"
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
include_patterns = ["*.md", "docs/*.md", "docs/site/*.rst", "examples/*.md", "protocol/*.md"]
myst_heading_anchors = 4
suppress_warnings = ["misc.highlighting_failure"]  # Blocks of code have "..." in them.
linkcheck_ignore = [r"http://(localhost|127\.0\.0\.1|NAME)", r"https://issuer\.example"]

html_theme = "furo"
html_title = f"Barnabas {version}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
copybutton_prompt_text = "$ "

autoclass_content = "both"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented_params"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "inherited-members": False}

SECTIONS: Final = {
    "Begin": {
        "docs/tutorial": "Tutorial",
        "docs/testing": "In a test",
        "docs/operating": "On a server",
        "docs/containers": "In a container",
    },
    "Look": {
        "docs/terminal": "Terminal",
        "docs/web": "The page",
        "docs/dump-log": "dump-log",
        "docs/verify": "verify",
        "docs/metrics": "Metrics and health",
        "docs/http-api": "The JSON API",
    },
    "Connect": {
        "docs/clients": "Clients",
        "docs/tools": "Apache Kafka's tools",
        "docs/ecosystem": "Around a broker",
        "docs/security": "Security",
        "docs/administration": "Administration",
        "docs/growing": "Growing out",
    },
    "Spark": {
        "docs/spark": "Topics in Spark",
        "docs/spark-values": "Typed values",
        "docs/spark-report": "Report",
        "docs/spark-archive": "Archive",
        "docs/spark-replay": "Replay",
        "docs/spark-compact": "Compact",
        "docs/spark-connector": "Kafka connector",
        "docs/spark-cluster": "On a cluster",
    },
    "Understand": {
        "docs/storage": "Storage, and when a record is gone",
        "docs/architecture": "Architecture",
        "docs/reliability": "Reliability",
        "docs/performance": "Performance",
        "docs/differences": "Differences to Apache Kafka",
        "docs/limits": "Limits",
        "protocol/README": "The wire protocol",
    },
    "Refer": {
        "docs/configuration": "Options",
        "docs/command-line": "Command line",
        "docs/site/python-api": "Python API",
        "CHANGELOG": "Changes",
    },
    "Take part": {
        "CONTRIBUTING": "Contributing",
        "CODE_OF_CONDUCT": "Code of conduct",
        "SECURITY": "Reporting a hole",
        "examples/README": "Examples",
    },
}
"""The menu: its sections, and the pages of each with their names."""

_LINK: Final = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)\s#]+)(#[^)\s]*)?(?=\))")
_CODE: Final = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)


def setup(app: Sphinx) -> None:
    """
    Register the changes to pages.
    """
    app.connect("source-read", _prepare)
    app.connect("build-finished", _begin_with_the_readme)


def _begin_with_the_readme(app: Sphinx, error: Exception | None) -> None:
    """
    The README is the page of the site's address without a name.
    """
    if error is None:
        shutil.copyfile(app.outdir / f"{root_doc}.html", app.outdir / "index.html")


def _prepare(_: Sphinx, name: str, source: list[str]) -> None:
    text = source[0]
    if name == root_doc:
        text = f"{_with_plain_pictures(text)}\n{_menu()}"
    source[0] = _without_links_to_files(text, ROOT / name)


def _menu() -> str:
    """
    What makes the menu: directives that a checkout would show as code.
    """
    parts = []
    for caption, pages in SECTIONS.items():
        entries = "\n".join(f"{title} <{page}>" for page, title in pages.items())
        parts.append(f"```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{entries}\n```\n")
    return "\n".join(parts)


def _with_plain_pictures(text: str) -> str:
    """
    Pictures without the ones for a dark theme, whose choice the site does not know.
    """
    picture = r'<picture>.*?<img alt="([^"]*)" src="([^"]*)">.*?</picture>'
    return re.sub(picture, r"![\1](\2)", text, flags=re.DOTALL)


def _without_links_to_files(text: str, page: Path) -> str:
    """
    Links to folders and programs of a checkout as words: the site does not have them.
    """
    kept = [match.span() for match in _CODE.finditer(text)]

    def renewed(match: re.Match[str]) -> str:
        if any(start <= match.start() < end for start, end in kept):
            return match[0]
        target = (page.parent / match[1]).resolve()
        is_page = target.suffix in (".md", ".rst", ".png", ".svg")
        return match[0] if is_page else f"{_GONE}{match[0]}"

    marked = _LINK.sub(renewed, text)
    return re.sub(rf"\[([^]]*)\]\({_GONE}[^)]*\)", r"\1", marked)


_GONE: Final = "\x00"
