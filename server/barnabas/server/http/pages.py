"""
Lists in answers, page by page.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeVar

from barnabas.server.http.guard import Refused
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

    start: int = 0
    limit: int = 1000


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
    if not 1 <= given.limit <= MOST_ENTRIES:
        raise Refused(400, f"limit is from 1 to {MOST_ENTRIES}, not {given.limit}")
    if given.start < 0:
        raise Refused(400, f"start is at least 0, not {given.start}")
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
