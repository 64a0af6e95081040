"""
Regular expressions that members of consumer groups subscribe to.

The broker matches them with the names of all topics. That takes a while, and is done beside the
requests; its result is written as records, and begins a new group epoch if it differs::

    heartbeat --> a pattern is new, or topics are --> resolve, in steps --> records 16, 3

Follows Kafka's ``maybeUpdateRegularExpressions`` and ``TopicRegexResolver``.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Final

from barnabas.coordination.coordinator_runtime.executor import Executor
from barnabas.coordination.coordinator_runtime.result import NOTHING, CoordinatorResult
from barnabas.coordination.groups.caller import Caller
from barnabas.coordination.groups.consumer.group import ConsumerGroup
from barnabas.coordination.groups.consumer.member import ConsumerGroupMember
from barnabas.coordination.groups.consumer.records import (
    epoch_record,
    regex_record,
    regex_tombstone,
)
from barnabas.coordination.groups.groups import Groups
from barnabas.coordination.groups.modern.subscriptions import ResolvedRegex
from barnabas.coordination.groups.modern.tally import count, discount
from barnabas.coordination.groups.modern.topics import SubscribedTopics
from barnabas.coordination.groups.records import CoordinatorRecord, GroupResult
from barnabas.coordination.regex.pattern import InvalidPattern, LinearPattern
from barnabas.coordination.steps import InSteps, checkpoint, finished
from barnabas.protocol.errors import InvalidRegularExpression

log = logging.getLogger(__name__)

LEAST_REFRESH_INTERVAL_MS: Final = 10_000
"""
The time between two refreshes of a group, at the least (Kafka:
``REGEX_BATCH_REFRESH_MIN_INTERVAL_MS``).
"""


class RegexUpdate(Enum):
    """
    What a heartbeat has changed in the regular expression of its member.
    """

    NONE = "none"
    UPDATED = "updated"
    UPDATED_AND_RESOLVED = "updated and resolved"  # its topics are known


class Regexes:
    """
    Keeps the topics of regular expressions up to date, for the groups of one partition.
    """

    def __init__(
        self,
        groups: Groups,
        topics: SubscribedTopics,
        executor: Executor,
        refresh_interval_ms: int,
    ) -> None:
        """
        Args:
            refresh_interval_ms: ``group.consumer.regex.refresh.interval.ms``.
        """
        self._groups = groups
        self._topics = topics
        self._executor = executor
        self._refresh_interval_ms = refresh_interval_ms

    def update(
        self,
        group: ConsumerGroup,
        before: ConsumerGroupMember,
        after: ConsumerGroupMember,
        *,
        caller: Caller,
        now_ms: int,
        records: list[CoordinatorRecord],
    ) -> RegexUpdate:
        """
        Take the change of a member, and begin a refresh if it is time for one.

        Args:
            records: gets those of the change.

        Raises:
            InvalidRegularExpression: the member's new pattern is none.
        """
        counts = group.subscriptions.regexes
        update = RegexUpdate.NONE
        is_unknown = False
        if before.topic_regex != after.topic_regex:
            update = RegexUpdate.UPDATED
            if before.topic_regex and counts.get(before.topic_regex) == 1:
                records.append(regex_tombstone(group.group_id, before.topic_regex))
            if after.topic_regex and after.topic_regex not in counts:
                check(after.topic_regex, caller.pattern)
                is_unknown = True
            elif not after.topic_regex or after.topic_regex in group.subscriptions.resolved:
                update = RegexUpdate.UPDATED_AND_RESOLVED
        if is_unknown or counts:
            self._refresh_if_due(
                group, before, after, caller=caller, now_ms=now_ms, is_unknown=is_unknown
            )
        return update

    def _refresh_if_due(
        self,
        group: ConsumerGroup,
        before: ConsumerGroupMember,
        after: ConsumerGroupMember,
        *,
        caller: Caller,
        now_ms: int,
        is_unknown: bool,
    ) -> None:
        key = f"{group.group_id}-regex"
        if self._executor.is_scheduled(key):
            return
        last = next(iter(group.subscriptions.resolved.values()), None)
        if last is not None and now_ms <= last.timestamp_ms + LEAST_REFRESH_INTERVAL_MS:
            return
        counts = group.subscriptions.regexes.copy()
        discount(counts, before.topic_regex)
        count(counts, after.topic_regex)
        regexes = sorted(filter(None, counts))
        is_due = (
            is_unknown
            or len(regexes) != len(group.subscriptions.resolved)
            or last is None
            or last.version < self._topics.version_with_new_topics
            or now_ms > last.timestamp_ms + self._refresh_interval_ms
        )
        if is_due and regexes:
            # A caller has a compiled pattern, and many refreshes may wait.
            sees_topic = caller.sees_topic
            self._executor.schedule(
                key, lambda: self._refresh(group.group_id, regexes, sees_topic, now_ms)
            )

    async def _refresh(
        self,
        group_id: str,
        regexes: Iterable[str],
        sees_topic: Callable[[str], bool],
        now_ms: int,
    ) -> GroupResult:
        """
        Match the patterns with all topics.

        Args:
            sees_topic: returns whether the caller may describe a topic.
        """
        version = self._topics.topics.version
        matches: dict[str, set[str]] = {regex: set() for regex in regexes}
        patterns = {}
        for regex in matches:
            try:
                patterns[regex] = await InSteps(LinearPattern.in_steps(regex))
            except InvalidPattern as error:
                # Another broker has accepted it.
                log.error("Group %s: a pattern matches nothing: %s", group_id, error)
        for topic in tuple(self._topics.topics):
            for regex, pattern in patterns.items():
                await checkpoint()
                if await InSteps(pattern.matching(topic.name)) and sees_topic(topic.name):
                    matches[regex].add(topic.name)
        group = self._groups.get(group_id)
        if not isinstance(group, ConsumerGroup):
            return NOTHING
        resolved = {
            regex: ResolvedRegex(frozenset(topics), version, now_ms)
            for regex, topics in matches.items()
            if regex in group.subscriptions.regexes
        }
        return self._resolved(group, resolved)

    def _resolved(self, group: ConsumerGroup, resolved: dict[str, ResolvedRegex]) -> GroupResult:
        records: list[CoordinatorRecord] = []
        subscriptions = group.subscriptions.copy()
        has_changed = False
        for regex, new in resolved.items():
            old = subscriptions.resolved.get(regex)
            has_changed |= new.topics != (frozenset() if old is None else old.topics)
            subscriptions.resolved[regex] = new
            records.append(regex_record(group.group_id, regex, new))
        metadata_hash = self._topics.hash(subscriptions.topics)
        if has_changed or metadata_hash != group.metadata_hash:
            epoch = group.group_epoch + 1
            records.append(epoch_record(group.group_id, epoch, metadata_hash))
            group.refreshed_epoch = epoch
            log.info("Group %s: epoch %d, for its patterns", group.group_id, epoch)
        return CoordinatorResult(records=records)


async def compiled(regex: str) -> LinearPattern | InvalidPattern:
    """
    Compile a pattern in short steps: a heartbeat is handled in one.
    """
    try:
        return await InSteps(LinearPattern.in_steps(regex))
    except InvalidPattern as error:
        return error.with_traceback(None)


def check(regex: str, pattern: LinearPattern | InvalidPattern | None) -> None:
    """
    Args:
        pattern: what became of *regex*; None if it was not compiled yet.

    Raises:
        InvalidRegularExpression: it is none of the dialect of RE2.
    """
    if pattern is None:
        pattern = finished(compiled(regex))
    if isinstance(pattern, InvalidPattern):
        raise InvalidRegularExpression(
            f"SubscribedTopicRegex `{regex}` is not a valid regular expression:"
            f" {pattern.description}."
        )
