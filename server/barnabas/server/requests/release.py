"""
Freeing large messages in steps.

To free 100,000 objects takes 10 to 50 ms, wherever the last reference to the list of them goes: at
the end of a function, say. A message that is of no further use is therefore taken apart first, as
far as its parts are nobody else's: what a handler has kept stays whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from sys import getrefcount
from typing import Any, Final

from barnabas.coordination.steps import checkpoint
from barnabas.protocol.codec.schema import Array, fields

AT_ONCE: Final = 200
"""
How many entries of a list are freed in one step.
"""
_ARRAYS: Final[dict[type, tuple[str, ...]]] = {}


async def released(box: list[Any]) -> None:
    """
    Take apart the messages in *box*, and empty it. Nobody else may have what is in there: it would
    be taken for somebody's, and freed at once.
    """
    lists = [box]
    while lists:
        entries = lists[-1]
        if not entries:
            lists.pop()
            continue
        some = entries[-AT_ONCE:]
        del entries[-AT_ONCE:]
        for index in _with_lists(some):
            lists += _long_lists(some, index)
        del some
        if entries or len(lists) > 1:  # a small message takes no step
            await checkpoint()


def _with_lists(entries: list[Any]) -> list[int]:
    """
    Which of the entries have lists that are not empty. Most messages have none.
    """
    return [
        index
        for cls in {*map(type, entries)}
        for name in _arrays(cls)
        for index, entry in enumerate(entries)
        if type(entry) is cls and getattr(entry, name)
    ]


def _long_lists(entries: list[Any], index: int) -> list[list[Any]]:
    """
    The lists that are only in the entry at *index*, which is only in *entries*, and too long to be
    freed at once, or may have what is.
    """
    if _references(entries[index : index + 1]) != [_OWN + 1]:
        return []
    entry = entries[index]
    values = [getattr(entry, name) for name in _arrays(type(entry))]
    return [
        values[index]
        for index, count in enumerate(_references(values))
        if count == _OWN + 1 and type(values[index]) is list and _may_be_long(values[index])
    ]


def _may_be_long(entries: list[Any]) -> bool:
    return len(entries) > AT_ONCE or (bool(entries) and bool(_arrays(type(entries[0]))))


def _references(entries: Sequence[Any]) -> list[int]:
    return [getrefcount(entry) for entry in entries]


# What the look itself adds to the reference of the list depends on the version of Python.
(_OWN,) = _references([object()])


def _arrays(cls: type) -> tuple[str, ...]:
    names = _ARRAYS.get(cls)
    if names is None:
        try:
            found = fields(cls)
        except TypeError:  # no message
            found = ()
        names = tuple(field.name for field in found if isinstance(field.type, Array))
        _ARRAYS[cls] = names
    return names
