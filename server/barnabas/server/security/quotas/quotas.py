"""
The quotas of clients, and what the clients have used of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.protocol.errors import ThrottlingQuotaExceeded
from barnabas.server.security.quotas.counters import Counters
from barnabas.server.security.quotas.limits import Entity, QuotaLimits
from barnabas.server.security.quotas.rate import MS, Rate, Windows, now_ms
from barnabas.server.security.quotas.token_bucket import TokenBucket

if TYPE_CHECKING:
    from barnabas.storage.clock import Clock

PRODUCER_BYTE_RATE: Final = "producer_byte_rate"
CONSUMER_BYTE_RATE: Final = "consumer_byte_rate"
REQUEST_PERCENTAGE: Final = "request_percentage"
CONTROLLER_MUTATION_RATE: Final = "controller_mutation_rate"


class RateQuotas:
    """
    Quotas of one kind on a rate (Kafka ``ClientQuotaManager``).
    """

    __slots__ = ("_counters", "_longest_ms", "_windows", "limits")

    def __init__(self, windows: Windows, *, longest_ms: int | None = None) -> None:
        """
        Args:
            longest_ms: the longest time that a client waits, if there is one.
        """
        self.limits = QuotaLimits()
        self._windows = windows
        self._longest_ms = longest_ms
        self._counters = Counters(
            self.limits, lambda _, now_ms: Rate(windows, now_ms), lambda _: windows.span_ms
        )

    def __len__(self) -> int:
        return len(self._counters)

    def change(self, entity: Entity, value: float | None) -> None:
        """
        Set the quota of *entity*, or remove it.
        """
        self.limits.change(entity, value)
        self._counters.limits_changed()

    def record(self, user: str, client_id: str, value: float, now_ms: int) -> int:
        """
        Count what a client has used, and return how long it has to wait, in ms.
        """
        counter = self._counters.of(user, client_id, now_ms)
        if counter is None:
            return 0
        counter.counted.record(value, now_ms)
        throttle_ms = counter.counted.throttle_ms(counter.limit, now_ms)
        return throttle_ms if self._longest_ms is None else min(throttle_ms, self._longest_ms)

    def take_back(self, user: str, client_id: str, value: float, now_ms: int) -> None:
        """
        The client has not used what was recorded.
        """
        counter = self._counters.of(user, client_id, now_ms)
        if counter is not None:
            counter.counted.record(-value, now_ms)

    def most_at_once(self, user: str, client_id: str) -> float | None:
        """
        What a client that was quiet may use without having to wait; None if there is no limit.
        """
        limit = self.limits.limit_of(self.limits.share_of(user, client_id))
        windows = self._windows
        return None if limit is None else limit * (windows.num - 1) * (windows.size_ms / MS)


class MutationQuotas:
    """
    Quotas on partitions that are created and deleted (KIP-599; Kafka
    ``ControllerMutationQuotaManager``).
    """

    __slots__ = ("_clock", "_counters", "limits")

    def __init__(self, windows: Windows, clock: Clock) -> None:
        self.limits = QuotaLimits()
        self._clock = clock
        self._counters = Counters(
            self.limits,
            lambda limit, now_ms: TokenBucket(windows, limit, now_ms),
            lambda counter: counter.counted.full_after_ms(counter.limit),
        )

    def __len__(self) -> int:
        return len(self._counters)

    def change(self, entity: Entity, value: float | None) -> None:
        """
        Set the quota of *entity*, or remove it.
        """
        self.limits.change(entity, value)
        self._counters.limits_changed()

    def of(self, user: str, client_id: str, *, is_strict: bool) -> MutationQuota | None:
        """
        The quota for one request of a client; None if it has no limit.

        Args:
            is_strict: what is over the quota is not done.
        """
        counter = self._counters.of(user, client_id, now_ms(self._clock))
        if counter is None:
            return None
        return MutationQuota(counter.counted, counter.limit, self._clock, is_strict=is_strict)


class MutationQuota:
    """
    What one request may create and delete.
    """

    __slots__ = ("_at_ms", "_bucket", "_clock", "_is_strict", "_limit", "_throttle_ms")

    def __init__(self, bucket: TokenBucket, limit: float, clock: Clock, *, is_strict: bool) -> None:
        self._bucket = bucket
        self._limit = limit
        self._clock = clock
        self._is_strict = is_strict
        self._throttle_ms = 0
        self._at_ms = 0

    def charge(self, partitions: int) -> None:
        """
        Count *partitions* that are going to be created or deleted.

        Raises:
            ThrottlingQuotaExceeded: earlier ones were too many already. Nothing is counted.
        """
        now = now_ms(self._clock)
        if self._is_strict:
            throttle_ms = self._bucket.throttle_ms(self._limit, now)
            if throttle_ms:
                self._throttle_ms, self._at_ms = throttle_ms, now
                raise ThrottlingQuotaExceeded
            self._bucket.take(partitions, self._limit, now)
            return
        self._bucket.take(partitions, self._limit, now)
        throttle_ms = self._bucket.throttle_ms(self._limit, now)
        if throttle_ms:
            self._throttle_ms, self._at_ms = throttle_ms, now

    def throttle_ms(self) -> int:
        """
        How long the client has to wait from now on.
        """
        if not self._throttle_ms:
            return 0
        return max(0, self._throttle_ms - (now_ms(self._clock) - self._at_ms))
