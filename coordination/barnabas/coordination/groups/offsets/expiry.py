"""
The expiry of committed offsets.

The time of ``offsets.retention.minutes`` begins (KIP-211):

* in a group without members: when the last one left;
* in a group that exists for its offsets only, or is of another protocol: with each commit;
* in a stable consumer group: with each commit, for topics that no member subscribes to.

Otherwise it does not begin. An offset may have an expiry of its own (OffsetCommit v2-4).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from barnabas.coordination.groups.classic.group import ClassicGroup
from barnabas.coordination.groups.classic.state import GroupState
from barnabas.coordination.groups.classic.subscriptions import CONSUMER
from barnabas.coordination.groups.group_type import GroupType
from barnabas.coordination.groups.groups import Group
from barnabas.coordination.groups.offsets.offsets import CommittedOffset, OffsetStore
from barnabas.coordination.groups.records import NO_EXPIRY, OffsetRecord

Beginning: TypeAlias = Callable[[CommittedOffset], int]


def _commit_time(offset: CommittedOffset) -> int:
    return offset.commit_timestamp_ms


def retention_begins(group: Group) -> Beginning | None:
    """
    A function to the time in ms at which the retention of an offset begins; None if it does not
    begin (Kafka's ``Group.offsetExpirationCondition``).
    """
    if not isinstance(group, ClassicGroup):
        return None if group.type is GroupType.SHARE else _commit_time
    if group.protocol_type is None:
        return _commit_time
    if group.is_empty:
        since_ms = group.state_timestamp_ms
        # Records of releases before Kafka 2.1 have no time of the state.
        return _commit_time if since_ms is None else lambda offset: since_ms
    if (
        group.protocol_type == CONSUMER
        and group.subscribed_topics is not None
        and group.state is GroupState.STABLE
    ):
        return _commit_time
    return None


def is_expired(
    offset: CommittedOffset, begins: Beginning, *, now_ms: int, retention_ms: int
) -> bool:
    """
    Whether an offset is past its retention.
    """
    if offset.expire_timestamp_ms != NO_EXPIRY:
        return now_ms >= offset.expire_timestamp_ms
    return now_ms - begins(offset) >= retention_ms


def expired_offsets(
    group: Group, offsets: OffsetStore, *, now_ms: int, retention_ms: int
) -> tuple[list[OffsetRecord], bool]:
    """
    The tombstones of a group's expired offsets, and whether no other offset is left.

    The offset of a partition for which a transaction is open stays.
    """
    pending = offsets.pending_partitions(group.group_id)
    committed = offsets.committed.of_group(group.group_id)
    if not committed:
        return [], not pending
    begins = retention_begins(group)
    if begins is None:
        return [], False
    expired: list[OffsetRecord] = []
    is_all = not pending
    for topic, partitions in committed.items():
        if group.is_subscribed_to(topic):
            is_all = False
            continue
        for partition, offset in partitions.items():
            if (topic, partition) not in pending and is_expired(
                offset, begins, now_ms=now_ms, retention_ms=retention_ms
            ):
                expired.append(OffsetRecord(group.group_id, topic, partition, None))
            else:
                is_all = False
    return expired, is_all
