"""
Heartbeat (12): a member of a group says that it is alive.

* v1 adds the throttle time.
* v3 adds static membership (KIP-345).
* v4 is flexible.
"""

from __future__ import annotations

from typing import ClassVar

from barnabas.protocol.apis import HEARTBEAT
from barnabas.protocol.codec.schema import Api, int16, int32, message, since


@message
class HeartbeatRequest:
    api: ClassVar[Api] = HEARTBEAT

    group_id: str
    generation_id: int32
    member_id: str
    group_instance_id: str | None = since(3, default=None)


@message
class HeartbeatResponse:
    api: ClassVar[Api] = HEARTBEAT

    throttle_time_ms: int32 = since(1, default=0)
    error_code: int16
