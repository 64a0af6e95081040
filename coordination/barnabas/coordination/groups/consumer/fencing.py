"""
The removal of members from consumer groups, on their own wish or not.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Sequence

from barnabas.coordination.coordinator_runtime.result import NOTHING, CoordinatorResult
from barnabas.coordination.groups.consumer.group import ConsumerGroup
from barnabas.coordination.groups.consumer.member import ConsumerGroupMember
from barnabas.coordination.groups.consumer.migration import Migration
from barnabas.coordination.groups.consumer.records import (
    epoch_record,
    member_tombstones,
    regex_tombstone,
)
from barnabas.coordination.groups.consumer.sessions import Sessions
from barnabas.coordination.groups.modern.topics import SubscribedTopics
from barnabas.coordination.groups.records import CoordinatorRecord, GroupResult

log = logging.getLogger(__name__)


class Fencing:
    """
    Removes members from the consumer groups of one partition.
    """

    def __init__(self, topics: SubscribedTopics, sessions: Sessions, migration: Migration) -> None:
        self._topics = topics
        self._sessions = sessions
        self._migration = migration

    def fence(
        self, group: ConsumerGroup, members: Sequence[ConsumerGroupMember], now_ms: int
    ) -> GroupResult:
        """
        Remove members. The group becomes a classic one if only classic members are left, and may
        become that.
        """
        if not members:
            return NOTHING
        if self._migration.can_downgrade(group, members):
            ended: Collection[ConsumerGroupMember] = group.members.values()
            result = self._migration.downgrade_without(group, members, now_ms)
        else:
            ended = members
            result = self._without(group, members)
        return self._sessions.removing(group, ended, result)

    def _without(self, group: ConsumerGroup, members: Sequence[ConsumerGroupMember]) -> GroupResult:
        records: list[CoordinatorRecord] = []
        for member in members:
            records += member_tombstones(group.group_id, member.member_id)
        subscriptions = group.subscriptions.copy()
        for member in members:
            subscriptions.remove(member)
        left = Counter(member.topic_regex for member in members if member.topic_regex)
        for regex in left:
            if regex not in subscriptions.regexes:
                records.append(regex_tombstone(group.group_id, regex))
                subscriptions.resolved.pop(regex, None)
        epoch = group.group_epoch + 1
        metadata_hash = self._topics.hash(subscriptions.topics)
        records.append(epoch_record(group.group_id, epoch, metadata_hash))
        member_ids = [member.member_id for member in members]
        log.debug("Group %s: epoch %d begins without %s", group.group_id, epoch, member_ids)
        return CoordinatorResult(records=records)
