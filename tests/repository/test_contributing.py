"""
The tables of CONTRIBUTING.md that list where an addition belongs.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = (ROOT / "CONTRIBUTING.md").read_text()
KINDS: Final = ("an API", "an option", "a metric", "a command", "a view of the page")
ROWS: Final = re.compile(r"^\| `(\S+)` \| (.+) \| `([^`]+)` \|$", re.MULTILINE)
SIBLINGS: Final = {
    "an API": ("DescribeQuorum", "ListConfigResources", "DescribeProducers", "UpdateFeatures"),
    "an option": ("barnabas.max.coordinator.bytes", "barnabas.read.only", "barnabas.log.format"),
    "a metric": ("certificate_seconds_left", "authorizations_denied", "requests_throttled"),
    "a command": ("healthcheck", "doctor", "backup", "graduate"),
    "a view of the page": ("views/transactions", "views/groups", "views/tail"),
}
"""Examples of each kind. Every addition touches a file that mentions all of them."""
ABOUT_ALL: Final = {"CHANGELOG.md", "CONTRIBUTING.md"}


def section(kind: str) -> str:
    """
    Cut out the answer for one kind of addition.
    """
    rest = PAGE[PAGE.index(f"### How do I add {kind}?\n") + 4 :]
    return re.split(r"^##", rest, maxsplit=1, flags=re.MULTILINE)[0]


def constant(name: str) -> str:
    """
    Spell the name of an API as its constant.
    """
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).upper()


SOURCES: Final = {
    path.relative_to(ROOT).as_posix(): path.read_text()
    for folder in ("protocol", "storage", "coordination", "server", "docs", "tests", "docker")
    for path in sorted((ROOT / folder).rglob("*"))
    if path.suffix in (".py", ".md", ".js", ".html", ".txt", ".json")
    and path.parent != Path(__file__).parent
}

PLACES: Final = [
    pytest.param(path, name, id=f"{kind}-{path}")
    for kind in KINDS
    for path, _, name in ROWS.findall(section(kind))
]


def test_every_kind_has_an_answer() -> None:
    assert list(KINDS) == re.findall(r"^### How do I add (.+)\?$", PAGE, re.MULTILINE)


@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_lists_code_a_page_and_a_test(kind: str) -> None:
    paths = [path for path, _, _ in ROWS.findall(section(kind))]

    assert paths
    assert len(paths) == len(set(paths))
    for folder in ("server/", "docs/", "tests/"):
        assert any(path.startswith(folder) for path in paths)


@pytest.mark.parametrize("kind", KINDS)
def test_every_row_is_one_that_is_checked(kind: str) -> None:
    rows = re.findall(r"^\| `", section(kind), re.MULTILINE)

    assert len(rows) == len(ROWS.findall(section(kind)))


@pytest.mark.parametrize(("path", "name"), PLACES)
def test_a_listed_file_contains_the_example(path: str, name: str) -> None:
    assert name in (ROOT / path).read_text()


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_mentions_several_examples_is_listed(kind: str) -> None:
    listed = {path for path, _, _ in ROWS.findall(section(kind))}
    mentioning = {
        path
        for path, text in SOURCES.items()
        if all(name in text or constant(name) in text for name in SIBLINGS[kind])
    }

    assert mentioning
    assert set() == mentioning - listed - ABOUT_ALL


@pytest.mark.parametrize("kind", KINDS)
def test_a_path_in_the_text_of_an_answer_exists(kind: str) -> None:
    prose = "\n".join(line for line in section(kind).splitlines() if line[:1] != "|")

    for path in re.findall(r"`([\w.]+/[\w./]+)`", prose):
        assert (ROOT / path).is_file(), path


def test_every_path_of_the_page_exists() -> None:
    for path in re.findall(
        r"`((?:tests|\.github|docs|coordination|server|storage|protocol)/[\w./]+)`", PAGE
    ):
        assert (ROOT / path).exists(), path
