from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

from barnabas.pipeline.jobs.report.facts import Report
from barnabas.pipeline.jobs.report.page import as_page
from barnabas.pipeline.jobs.report.text import as_text, key_text

pytestmark = [pytest.mark.spark, pytest.mark.prove]


def test_text_report_has_disorder_and_excess_retention(report: Report) -> None:
    text = as_text(report)
    section = text[text.index("times-0") : text.index("times-1")]

    assert "3 segments, " in section
    assert "4 records out of order, by up to 4 hours" in section
    assert "retention: retention.ms 4 hours, retention.bytes none" in section
    assert "segment 0 is older, has later records, and goes first" in section
    assert "2023-11-15T07:13:20.001Z at least" in section
    assert "segments more" not in section
    assert "6 records repeated, most by producer 7" in text
    assert "2 gaps, 9 offsets missing" in text
    assert '3 different, the most frequent, "often", in 53.8%, 3 records without one' in text


def test_text_report_leaves_out_the_middle_of_many_segments(report: Report) -> None:
    times = next(each for each in report.partitions if each.partition.topic == "times")
    many = replace(times, segments=times.segments * 7)

    text = as_text(replace(report, partitions=(many,)))

    assert "... 9 segments more ..." in text
    assert 12 == len(re.findall(r"segment \d+: ", text))


def test_keys_are_printed_as_short_text_or_hexadecimal() -> None:
    assert '""' == key_text(b"")
    assert '"größe"' == key_text("größe".encode())
    assert "0xff00" == key_text(b"\xff\x00")
    assert "0x0a" == key_text(b"\n")
    assert 40 == len(key_text(b"x" * 100))


@pytest.fixture(scope="module")
def page(report: Report) -> str:
    return as_page(report)


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.fetched: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        given = dict(attrs)
        targets = [given.get(name) for name in ("src", "href", "xlink:href")]
        self.fetched += [target for target in targets if target and not target.startswith("#")]


def test_page_is_self_contained(page: str) -> None:
    links = _Links()
    links.feed(page)

    assert [] == links.fetched
    assert "script" not in links.tags
    assert 4 == links.tags.count("svg")
    assert "@import" not in page
    assert "url(http" not in page


def test_plots_are_complete(page: str) -> None:
    pictures = re.findall(r"<svg.*?</svg>", page, re.DOTALL)

    for picture in pictures:
        ElementTree.fromstring(picture)
    assert all(name in pictures[0] for name in ("times-0", "times-1", "keys-0", "now"))
    assert not re.search(r"\b1970\b", pictures[0]), "all of it is of two days"
    assert "zstd" in pictures[1]


def test_page_is_deterministic(report: Report, page: str) -> None:
    assert page == as_page(report)


def test_names_and_keys_are_escaped(page: str) -> None:
    assert "&quot;often&quot;" in page
