"""
Observations that no healthy broker gives.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any
from uuid import UUID

TOPIC_ID = UUID(int=7)


def partition(
    *, start: int = 0, stable: int = 5, high: int = 5, end: int = 5, epoch: int = 0, **config: Any
) -> Any:
    """
    A partition of ``orders`` at these offsets.
    """
    options = {
        "cleanup_policy": ("delete",),
        "compression_type": "producer",
        "message_timestamp_type": "CreateTime",
    }
    log = SimpleNamespace(
        log_start_offset=start,
        last_stable_offset=stable,
        high_watermark=high,
        log_end_offset=end,
        config=SimpleNamespace(**(options | config)),
    )
    return SimpleNamespace(
        topic="orders", index=0, topic_id=TOPIC_ID, leader_epoch=epoch, error=None, log=log
    )


def committed(offset: int, *, commit_ms: int = 0) -> Any:
    return SimpleNamespace(offset=offset, commit_timestamp_ms=commit_ms, expire_timestamp_ms=-1)


def shard(
    *groups: Any,
    offsets: Iterable[tuple[str, str, int, Any]] = (),
    pending: Iterable[tuple[str, str, int, Any]] = (),
) -> Any:
    """
    A partition of ``__consumer_offsets`` that is loaded.
    """
    return SimpleNamespace(
        log=SimpleNamespace(is_open=True),
        state=SimpleNamespace(
            groups=list(groups),
            offsets=SimpleNamespace(committed=list(offsets), _pending={7: list(pending)}),
        ),
    )
