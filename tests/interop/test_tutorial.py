"""
``docs/tutorial.md``, from its first line to its last.
"""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.page_reader import Reader, blocks_of


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    reader = Reader(tmp_path)
    yield reader
    reader.end()


def test_tutorial_steps_work_as_described(reader: Reader) -> None:
    for language, block in blocks_of("docs/tutorial.md"):
        reader.follow(language, block)

    with urllib.request.urlopen(f"http://localhost:{reader.http_port}/", timeout=10) as answer:
        assert 200 == answer.status
    assert len(reader.commands) >= 10
