"""
The topics that the members of a group subscribe to, by name and by regular expression.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Protocol

from barnabas.coordination.groups.modern.tally import Tally, count, discount
from barnabas.protocol.structs import NamedTuple


class ResolvedRegex(NamedTuple):
    """
    The topics that a regular expression matched.
    """

    topics: frozenset[str]
    version: int  # of the metadata of the cluster
    timestamp_ms: int


class SubscribingMember(Protocol):
    """
    A member of a group, as its subscription and its target are made of it.
    """

    @property
    def member_id(self) -> str: ...
    @property
    def instance_id(self) -> str | None: ...
    @property
    def rack_id(self) -> str | None: ...
    @property
    def topic_names(self) -> frozenset[str]: ...
    @property
    def topic_regex(self) -> str: ...


class Subscriptions:
    """
    Counts of what members subscribe to, and what their regular expressions match.

    Invariants:

    1. No count is 0.

    Args:
        members: those that subscribe.
        resolved: the topics of regular expressions, as far as they are known.
    """

    __slots__ = ("names", "regexes", "resolved")

    def __init__(
        self,
        members: Iterable[SubscribingMember] = (),
        resolved: Mapping[str, ResolvedRegex] | None = None,
    ) -> None:
        self.names: Tally = {}
        self.regexes: Tally = {}
        self.resolved: dict[str, ResolvedRegex] = dict(resolved or {})
        for member in members:
            self.add(member)

    def copy(self) -> Subscriptions:
        """
        The same subscriptions, to be changed on their own.
        """
        copy = Subscriptions(resolved=self.resolved)
        copy.names = self.names.copy()
        copy.regexes = self.regexes.copy()
        return copy

    def changed(self, before: SubscribingMember, after: SubscribingMember) -> Subscriptions:
        """
        The subscriptions after the change of a member; the same object if it changes none.
        """
        if before.topic_names == after.topic_names and before.topic_regex == after.topic_regex:
            return self
        changed = self.copy()
        changed.remove(before)
        changed.add(after)
        if before.topic_regex and before.topic_regex not in changed.regexes:
            changed.resolved.pop(before.topic_regex, None)
        return changed

    def add(self, member: SubscribingMember) -> None:
        """
        Count the subscriptions of a member.
        """
        names = self.names
        if names:
            for name in member.topic_names:
                names[name] = names.get(name, 0) + 1
        else:
            names |= dict.fromkeys(member.topic_names, 1)
        if member.topic_regex:
            count(self.regexes, member.topic_regex)

    def remove(self, member: SubscribingMember) -> None:
        """
        Count the subscriptions of a member no longer.
        """
        for name in member.topic_names:
            discount(self.names, name)
        if member.topic_regex:
            discount(self.regexes, member.topic_regex)

    @property
    def topics(self) -> set[str]:
        """
        The names of all topics that a member names, or that a regular expression matches.
        """
        topics = set(self.names)
        for resolved in self.resolved.values():
            topics |= resolved.topics
        return topics

    def __contains__(self, topic: str) -> bool:
        return topic in self.names or any(topic in each.topics for each in self.resolved.values())

    def are_homogeneous(self, member_count: int) -> bool:
        """
        Whether all members subscribe to the same topics in the same way (Kafka's
        ``ConsumerGroup.subscriptionType``).
        """
        if not self.regexes:
            return all(each == member_count for each in self.names.values())
        if next(iter(self.regexes.values())) != member_count or self.names:
            return False
        matches = Counter(name for each in self.resolved.values() for name in each.topics)
        return all(each == 1 for each in matches.values())
