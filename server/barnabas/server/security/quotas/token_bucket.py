"""
Tokens that come back with time, for what comes in bursts (Kafka ``TokenBucket``; KIP-599).
"""

from __future__ import annotations

from barnabas.server.security.quotas.rate import MS, Windows, rounded_ms


class TokenBucket:
    """
    Holds as many tokens as all windows bring. What is taken may leave less than none.

    Times are in ms and do not go back.
    """

    __slots__ = ("_at_ms", "_tokens", "_windows")

    def __init__(self, windows: Windows, limit: float, now_ms: int) -> None:
        """
        Args:
            limit: how many tokens come back in a second.
        """
        self._windows = windows
        self._tokens = self._burst(limit)
        self._at_ms = now_ms

    def _burst(self, limit: float) -> float:
        return self._windows.num * (self._windows.size_ms / MS) * limit

    def tokens(self, limit: float, now_ms: int) -> float:
        """
        How many tokens there are now.
        """
        refilled = self._tokens + limit * ((now_ms - self._at_ms) / MS)
        self._tokens = min(self._burst(limit), refilled)
        self._at_ms = now_ms
        return self._tokens

    def take(self, count: float, limit: float, now_ms: int) -> None:
        """
        Take *count* tokens, whether they are there or not.
        """
        self._tokens = min(self._burst(limit), self.tokens(limit, now_ms) - count)

    def throttle_ms(self, limit: float, now_ms: int) -> int:
        """
        How long until there are no longer less than none.
        """
        tokens = self.tokens(limit, now_ms)
        return rounded_ms(-tokens / limit * MS) if tokens < 0 else 0

    def full_after_ms(self, limit: float) -> float:
        """
        How long after the last use the bucket is full, as a new one is.
        """
        return (self._burst(limit) - self._tokens) / limit * MS
