"""
How often a client may ask for subscriptions to its metrics, and send the metrics (KIP-714; Kafka
``ClientMetricsManager``).
"""

from __future__ import annotations

import math
from typing import Final
from uuid import UUID
from zlib import crc32

from barnabas.protocol.errors import (
    InvalidRequest,
    TelemetryTooLarge,
    ThrottlingQuotaExceeded,
    UnknownSubscriptionId,
    UnsupportedCompressionType,
)

PUSH_INTERVAL_S: Final = 300
MAX_BYTES: Final = 1024 * 1024
COMPRESSION_TYPES: Final = range(5)
_MAY_ASK_AGAIN: Final = (UnknownSubscriptionId, UnsupportedCompressionType)


class TelemetrySession:
    """
    One client instance on one connection. Kafka forgets an instance with its connection, too.
    """

    def __init__(self, instance_id: UUID) -> None:
        self.instance_id = instance_id
        # Signed, as in the message. It depends on the id alone: there are no subscriptions.
        self.subscription_id = int.from_bytes(crc32(instance_id.bytes).to_bytes(4), signed=True)
        self._asked_s = self._pushed_s = -math.inf
        self._has_ended = False
        self._may_ask_again = False  # since the last push was refused

    def ask(self, now_s: float) -> None:
        """
        The client asks for its subscriptions.

        Raises:
            ThrottlingQuotaExceeded: it has asked or sent too recently.
        """
        if now_s - max(self._asked_s, self._pushed_s) > PUSH_INTERVAL_S:
            self._asked_s = now_s
        elif not self._may_ask_again:
            raise ThrottlingQuotaExceeded
        self._may_ask_again = False

    def push(
        self, subscription_id: int, compression_type: int, size: int, now_s: float, *, is_last: bool
    ) -> None:
        """
        The client sends metrics of *size* bytes.

        Raises:
            InvalidRequest: it has said that it would send no more.
            ThrottlingQuotaExceeded: it has sent some too recently.
            UnknownSubscriptionId, UnsupportedCompressionType, TelemetryTooLarge: they are refused.
        """
        if self._has_ended:
            raise InvalidRequest
        self._has_ended = is_last
        try:
            # The first push behind an answer may come at any time: clients choose it at random.
            if self._asked_s > self._pushed_s or now_s - self._pushed_s >= PUSH_INTERVAL_S:
                self._pushed_s = now_s
            elif not is_last:
                raise ThrottlingQuotaExceeded
            if subscription_id != self.subscription_id:
                raise UnknownSubscriptionId
            if compression_type not in COMPRESSION_TYPES:
                raise UnsupportedCompressionType
            if size > MAX_BYTES:
                raise TelemetryTooLarge
        except _MAY_ASK_AGAIN:
            self._may_ask_again = True
            raise
