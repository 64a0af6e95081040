"""
Warnings of records that will be deleted unread.

::

    foreseen in          1   2   3   4   ...            rounds
    warned                   ^                          once: it is no passing thought
    quiet again after                 CALM_ROUNDS       without a loss; then a loss is news again
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Final

from barnabas.coordination.steps import checkpoint
from barnabas.server.forecast.positions import GroupPartition
from barnabas.storage.forecast.forecast import Forecast, ForecastVerdict
from barnabas.storage.units import DAYS

logger = logging.getLogger(__name__)

SURE_ROUNDS: Final = 2
"""
A loss has to be foreseen in so many rounds after each other.
"""
CALM_ROUNDS: Final = 10
"""
After so many rounds without a loss it is over.
"""
AHEAD_MS: Final = DAYS
"""
There is no warning of a loss that begins later: a group may have rested until then for good reason.
"""
MOST_LINES: Final = 20
"""
So many warnings of a round have lines of their own; the others are one line.
"""


class LossWarning:
    """
    Whether a group was warned of in one partition.
    """

    __slots__ = ("_calm", "_sure", "is_on")

    def __init__(self) -> None:
        self.is_on = False
        self._sure = 0
        self._calm = 0

    def take(self, foreseen: Forecast | None) -> bool:
        """
        Take the forecast of a round; return whether it is time for a warning.
        """
        loss = None if foreseen is None else foreseen.loss
        if foreseen is None or foreseen.verdict is ForecastVerdict.UNKNOWN:
            return False
        if loss is None:
            self._sure = 0
            self._calm += 1
            if self._calm >= CALM_ROUNDS:
                self.is_on = False
            return False
        self._calm = 0
        is_soon = loss.begins_ms - foreseen.now_ms <= AHEAD_MS
        self._sure = self._sure + 1 if is_soon else 0
        if self.is_on or self._sure < SURE_ROUNDS:
            return False
        self.is_on = True
        return True


async def news_in(
    found: Iterable[tuple[GroupPartition, LossWarning, Forecast | None]],
) -> list[tuple[GroupPartition, Forecast]]:
    """
    The losses of a round that are news.
    """
    news = []
    for key, warning, foreseen in found:
        await checkpoint()
        if warning.take(foreseen):
            assert foreseen is not None
            news.append((key, foreseen))
    return news


def warn(news: Sequence[tuple[GroupPartition, Forecast]]) -> None:
    """
    Log them. The first time this loads modules, for which the event loop should not wait.
    """
    from barnabas.storage.explain.wording.forecast import loss_sentence  # noqa: PLC0415

    for key, foreseen in news[:MOST_LINES]:
        logger.warning(
            "group %s in %s-%d, at offset %d: %s",
            key.group_id,
            key.topic,
            key.partition,
            foreseen.pace.offset,
            loss_sentence(foreseen),
        )
    if more := len(news[MOST_LINES:]):
        logger.warning("groups will lose unread records in %d more partitions", more)
