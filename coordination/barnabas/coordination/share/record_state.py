"""
The states of a record in a share group, and what a member says of it (Kafka's ``RecordState`` and
``AcknowledgeType``).

::

                 acquire                 accept
    AVAILABLE -------------> ACQUIRED -------------> ACKNOWLEDGED
        ^                     |    |  reject, gap
        +---------------------+    +---------------> ARCHIVED
          release, lock ended,          ^
          session ended                 |
                                release at the limit of deliveries
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Final


class RecordState(IntEnum):
    """
    What became of a record. The numbers are those in the records of the share coordinator.
    """

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVING = 3  # is going to a dead letter queue (KIP-1191), which no release has yet
    ARCHIVED = 4


FINAL_STATES: Final = frozenset({RecordState.ACKNOWLEDGED, RecordState.ARCHIVED})


class AcknowledgeType(IntEnum):
    """
    What a member says of a record. ``GAP`` stands for an offset without a record.
    """

    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


STATE_AFTER: Final[Mapping[int, RecordState]] = {
    AcknowledgeType.GAP: RecordState.ARCHIVED,
    AcknowledgeType.ACCEPT: RecordState.ACKNOWLEDGED,
    AcknowledgeType.RELEASE: RecordState.AVAILABLE,
    AcknowledgeType.REJECT: RecordState.ARCHIVED,
}
"""
The state that an acquired record gets. ``RENEW`` is not among them: it stays acquired.
"""
