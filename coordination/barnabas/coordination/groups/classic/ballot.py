"""
The election of a group's protocol: the one with the most votes, of those that every member offers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

from barnabas.coordination.groups.classic.member import ClassicGroupMember, MemberProtocol


class Ballot:
    """
    The number of members that offer each protocol.

    A member is withdrawn with the protocols that it entered with.
    """

    __slots__ = ("_offered",)

    def __init__(self) -> None:
        self._offered: Counter[str] = Counter()

    def enter(self, protocols: Iterable[MemberProtocol]) -> None:
        """
        Count the protocols of a member.
        """
        self._offered.update(protocol.name for protocol in protocols)

    def withdraw(self, protocols: Iterable[MemberProtocol]) -> None:
        """
        Stop counting the protocols of a member.
        """
        self._offered.subtract(protocol.name for protocol in protocols)

    def offers_any(self, protocols: Iterable[MemberProtocol], everyone: int) -> bool:
        """
        Whether *everyone*, the number of members, offers one of these protocols.
        """
        return any(self._offered[protocol.name] == everyone for protocol in protocols)

    def elect(self, members: Collection[ClassicGroupMember]) -> str:
        """
        The protocol with the most votes; of several, the one that got its first vote earlier.
        """
        everyone = len(members)
        candidates = {name for name, count in self._offered.items() if count == everyone}
        votes = Counter(member.vote(candidates) for member in members)
        return max(votes, key=votes.__getitem__)
