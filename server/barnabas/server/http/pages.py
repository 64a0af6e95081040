"""
Lists in answers, page by page.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, NamedTuple, TypeVar

from barnabas.server.http.fields import Range
from barnabas.server.http.json_api import Answer

T = TypeVar("T")

MOST_ENTRIES: Final = 10_000

MOST_BYTES: Final = 16 << 20
"""
About the most bytes of an answer; a single entry may have more.
"""


@dataclass(frozen=True, slots=True)
class Page:
    """
    A part of a list.
    """

    start: Annotated[int, Range(0), "the number of entries before the page"] = 0
    limit: Annotated[int, Range(1, MOST_ENTRIES), "the most entries of the page"] = 1000


class Entry(NamedTuple):
    """
    What an answer says of one thing, and about how many bytes that takes.
    """

    content: Any
    size: int = 0


def page(name: str, found: Sequence[T], given: Page, view: Callable[[T], Entry]) -> Answer:
    """
    The entries of a page, and where the next one starts: null after the last one.
    """
    contents: list[Any] = []
    size = 0
    for each in found[given.start : given.start + given.limit]:
        entry = view(each)
        size += entry.size
        if contents and size > MOST_BYTES:
            break
        contents.append(entry.content)
    end = given.start + len(contents)
    return Answer({name: contents, "next": end if end < len(found) else None})
