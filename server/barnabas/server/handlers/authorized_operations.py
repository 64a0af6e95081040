"""
The operations that a client may ask to be told it is allowed (KIP-430).

Without an authorizer everything is allowed. Bit *n* stands for the operation with the number *n* in
Kafka's ``AclOperation``: 3 read, 4 write, 5 create, 6 delete, 7 alter, 8 describe, 9 cluster
action, 10 describe configs, 11 alter configs, 12 idempotent write.
"""

from __future__ import annotations

from typing import Final


def _bits(*operations: int) -> int:
    return sum(1 << operation for operation in operations)


TOPIC_OPERATIONS: Final = _bits(3, 4, 5, 6, 7, 8, 10, 11)
CLUSTER_OPERATIONS: Final = _bits(5, 7, 8, 9, 10, 11, 12)
GROUP_OPERATIONS: Final = _bits(3, 6, 8, 10, 11)
NOT_REQUESTED: Final = -(2**31)
