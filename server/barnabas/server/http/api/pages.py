"""
Lists in answers of the API: a page, and how many entries there are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from barnabas.server.http.json_api import Answer
from barnabas.server.http.pages import Entry, Page, page

T = TypeVar("T")


def listed(name: str, found: Sequence[T], given: Page, view: Callable[[T], Entry]) -> Answer:
    """
    The entries of a page, where the next one starts, and the number of all entries.
    """
    answer = page(name, found, given, view)
    return Answer(answer.content | {"total": len(found)})
