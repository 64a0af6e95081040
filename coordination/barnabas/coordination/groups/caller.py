"""
The sender of a request, as groups know it.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.protocol.structs import NamedTuple

if TYPE_CHECKING:
    from barnabas.coordination.regex.pattern import InvalidPattern, LinearPattern


def _sees_all(topic: str) -> bool:
    return True


class Caller(NamedTuple):
    """
    The sender of a request.
    """

    version: int
    client_id: str
    client_host: str
    sees_topic: Callable[[str], bool] = _sees_all  # whether it may describe a topic
    pattern: LinearPattern | InvalidPattern | None = None  # what became of its new pattern
