"""
The epochs of consumer and share groups.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, TypeAlias

from barnabas.coordination.groups.modern.group import ModernGroup
from barnabas.coordination.groups.modern.records import ModernRecord
from barnabas.coordination.groups.modern.subscriptions import Subscriptions
from barnabas.coordination.groups.modern.topics import SubscribedTopics
from barnabas.coordination.groups.records import CoordinatorRecord

log = logging.getLogger(__name__)

EpochRecord: TypeAlias = Callable[[str, int, int], ModernRecord]
"""
Makes the record of an epoch, of the id of a group, the epoch, and the hash of its topics.
"""


def next_epoch(
    group: ModernGroup[Any, Any],
    subscriptions: Subscriptions,
    topics: SubscribedTopics,
    records: list[CoordinatorRecord],
    *,
    epoch_record: EpochRecord,
    must_bump: bool,
) -> int:
    """
    The epoch of a group with these subscriptions, whose topics may have changed: a new one if they
    have, too.

    Args:
        records: gets that of the new epoch.
    """
    epoch = group.group_epoch
    metadata_hash = topics.hash(subscriptions.topics)
    if must_bump or metadata_hash != group.metadata_hash:
        epoch += 1
        records.append(epoch_record(group.group_id, epoch, metadata_hash))
        log.debug("Group %s: epoch %d begins", group.group_id, epoch)
    group.refreshed_epoch = epoch
    return epoch
