"""
How far the loading of the logs is.
"""

from __future__ import annotations

from typing import NamedTuple


class LoadProgress(NamedTuple):
    """
    The numbers of logs that a load has found so far, and that it has done.
    """

    logs: int
    done: int

    @property
    def left(self) -> int:
        return self.logs - self.done
