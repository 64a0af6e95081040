"""
The bound on series: what has none of its own is summed up.
"""

from __future__ import annotations

from typing import Final

OTHERS: Final = "(others)"
"""
The label of what is summed up. No topic has this name.
"""


class SeriesRoom:
    """
    The number of series that there may still be.
    """

    def __init__(self, places: int) -> None:
        self.places = places

    def take(self) -> bool:
        """
        Take a place, if there is one.
        """
        if self.places <= 0:
            return False
        self.places -= 1
        return True
