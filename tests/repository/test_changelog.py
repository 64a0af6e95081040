"""
The form of the changelog (https://keepachangelog.com/en/1.1.0/).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Final

import pytest

PAGE: Final = (Path(__file__).parents[2] / "CHANGELOG.md").read_text()
KINDS: Final = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")
LONGEST: Final = 330
"""Characters of an entry."""


@dataclass
class Version:
    """
    A section of the changelog.
    """

    title: str
    kinds: list[str] = field(default_factory=list)
    entries: list[str] = field(default_factory=list)
    other_lines: list[str] = field(default_factory=list)


def versions(page: str) -> list[Version]:
    """
    Parse the sections of a changelog.
    """
    found: list[Version] = []
    is_in_entry = False
    for line in page[page.index("\n## ") :].splitlines():
        continues = is_in_entry and line.startswith("  ")
        is_in_entry = line.startswith("- ") or continues
        match line.partition(" "):
            case ("##", _, title):
                found.append(Version(title))
            case ("###", _, kind):
                found[-1].kinds.append(kind)
            case ("-", _, text):
                found[-1].entries.append(text)
            case ("", "", "") | ("####", _, _):
                pass
            case _ if continues:
                found[-1].entries[-1] += f" {line.strip()}"
            case _:
                found[-1].other_lines.append(line)
    return found


def faults_of(entry: str) -> list[str]:
    """
    Check that an entry is one plain sentence.
    """
    words = re.sub(r"`[^`]*`", "code", re.sub(r"\]\([^)]*\)", "]", entry))
    checks = {
        "does not end with a full stop": words.endswith("."),
        "has several sentences": not re.search(r"[.!?] ", words),
        "does not begin with a capital letter, an area or code": re.match(
            r"[A-Z\[]|code|lz4", words
        ),
        f"has more than {LONGEST} characters": len(entry) <= LONGEST,
        "is bold": "**" not in words,
    }
    return [f"{entry[:60]}... {fault}" for fault, is_good in checks.items() if not is_good]


VERSIONS: Final = versions(PAGE)


def test_unreleased_or_dated_versions_follow_each_other_newest_first() -> None:
    assert VERSIONS
    numbers, dates = [], []
    for place, version in enumerate(VERSIONS):
        if version.title == "[Unreleased]":
            assert 0 == place
            continue
        match = re.fullmatch(r"\[(\d+)\.(\d+)\.(\d+)\] - (\d{4}-\d\d-\d\d)", version.title)
        assert match, version.title
        numbers.append(tuple(map(int, match.groups()[:3])))
        dates.append(date.fromisoformat(match[4]))
    assert sorted(set(numbers), reverse=True) == numbers
    assert sorted(dates, reverse=True) == dates


@pytest.mark.parametrize("version", VERSIONS, ids=lambda version: version.title)
def test_kinds_of_changes_are_those_of_the_format_in_one_order(version: Version) -> None:
    assert [kind for kind in KINDS if kind in version.kinds] == version.kinds


@pytest.mark.parametrize("version", VERSIONS, ids=lambda version: version.title)
def test_every_line_is_a_heading_or_an_entry(version: Version) -> None:
    assert [] == version.other_lines


@pytest.mark.parametrize("version", VERSIONS, ids=lambda version: version.title)
def test_every_entry_is_one_short_sentence(version: Version) -> None:
    assert [] == [fault for entry in version.entries for fault in faults_of(entry)]


@pytest.mark.parametrize("version", VERSIONS, ids=lambda version: version.title)
def test_no_entry_is_there_twice(version: Version) -> None:
    assert len(version.entries) == len(set(version.entries))


@pytest.mark.parametrize(
    ("entry", "fault"),
    [
        ("A command prints the version", "full stop"),
        ("A command prints the version. It failed.", "several sentences"),
        ("a command prints the version.", "capital letter"),
        ("**Changed**: a command prints the version.", "bold"),
        (f"A {LONGEST * 'x'}.", "characters"),
    ],
)
def test_an_entry_in_another_form_is_found(entry: str, fault: str) -> None:
    assert any(fault in each for each in faults_of(entry))
