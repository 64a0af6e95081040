"""
The order in which an assignor sees the members of a group.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from collections.abc import Iterable

from barnabas.coordination.groups.assignors.java_order.hash_order import HashOrder
from barnabas.coordination.groups.assignors.java_order.timeline import timeline_order
from barnabas.coordination.java_strings import string_hash


def member_order(
    member_ids: Iterable[str],
    *,
    largest: int | None = None,
    updated: str | None = None,
    replaced: str | None = None,
) -> list[str]:
    """
    The ids of the members in the order of the map that Kafka's ``TargetAssignmentBuilder`` makes.

    It puts the members of the group into a ``HashMap``, then the one whose heartbeat it is, and
    removes the static member that this one replaces.

    Args:
        member_ids: those of the group, in the order in which they joined it.
        largest: the number of members when there were most; by default there were never more.
        updated: the member whose heartbeat it is, new or not.
        replaced: the static member whose instance id it has taken.
    """
    joined = list(member_ids)
    most = len(joined) if largest is None else max(largest, len(joined))
    order = HashOrder(string_hash, keys=timeline_order(joined, most))
    changed = [member_id for member_id in (updated, replaced) if member_id is not None]
    for member_id in HashOrder(string_hash, keys=changed):
        if member_id == replaced:
            order.remove(member_id)
        else:
            order.put(member_id)
    return list(order)
