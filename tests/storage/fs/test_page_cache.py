from __future__ import annotations

import mmap
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from barnabas.storage.fs import page_cache

PAGE = mmap.PAGESIZE


def counting(pages: int, *, result: int = 0) -> Callable[..., int]:
    def cachestat(number: int, fd: int, wanted: Any, counts: Any, flags: int) -> int:
        counts[0] = pages
        return result

    return cachestat


@pytest.mark.parametrize(
    ("position", "size", "pages"),
    [(0, 1, 1), (0, PAGE, 1), (0, PAGE + 1, 2), (PAGE - 1, 2, 2), (5 * PAGE, 3 * PAGE, 3)],
)
def test_range_is_cached_if_all_of_its_pages_are(
    position: int, size: int, pages: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for cached in (pages - 1, pages):
        monkeypatch.setattr(page_cache, "_cachestat", counting(cached))

        assert (cached == pages) == page_cache.holds(3, position, size)


@pytest.mark.parametrize("cachestat", [None, counting(9, result=-1)], ids=["no", "refusing"])
def test_page_cache_state_is_unknown_if_the_kernel_does_not_report_it(
    cachestat: Callable[..., int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_cache, "_cachestat", cachestat)

    assert not page_cache.holds(3, 0, 1)


def test_kernel_reports_which_pages_of_a_file_are_cached(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"x" * 3 * PAGE)
    with path.open("rb") as file:
        written = page_cache.holds(file.fileno(), 0, 3 * PAGE)
        behind = page_cache.holds(file.fileno(), 0, 4 * PAGE)

    if tuple(map(int, os.uname().release.split(".")[:2])) < (6, 5):
        pytest.skip("the kernel does not tell")
    assert written
    assert not behind
