"""
FindCoordinator (10): which broker looks after a group or a transactional id.

* v1 adds the type of the key, the throttle time and error messages.
* v3 is flexible.
* v4 asks for several keys at once (KIP-699).
* v5 may answer TRANSACTION_ABORTABLE (KIP-890).
* v6 knows share groups (KIP-932).
"""

from __future__ import annotations

from typing import ClassVar

from barnabas.protocol.apis import FIND_COORDINATOR
from barnabas.protocol.codec.schema import Api, int8, int16, int32, message, since


@message
class FindCoordinatorRequest:
    api: ClassVar[Api] = FIND_COORDINATOR

    key: str = since(0, until=3, default="")
    key_type: int8 = since(1, default=0)
    coordinator_keys: list[str] = since(4, default=[])


@message
class Coordinator:
    key: str
    node_id: int32
    host: str
    port: int32
    error_code: int16
    error_message: str | None = None


@message
class FindCoordinatorResponse:
    api: ClassVar[Api] = FIND_COORDINATOR

    throttle_time_ms: int32 = since(1, default=0)
    error_code: int16 = since(0, until=3, default=0)
    error_message: str | None = since(1, until=3, default=None)
    node_id: int32 = since(0, until=3, default=0)
    host: str = since(0, until=3, default="")
    port: int32 = since(0, until=3, default=0)
    coordinators: list[Coordinator] = since(4, default=[])
