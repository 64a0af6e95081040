"""
Which protocol a group uses: the one with the most votes, of those that every member offers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

from barnabas.server.groups.classic.member import Member, MemberProtocol


class Ballot:
    """
    How many members of a group offer each protocol.

    Whoever enters withdraws with the very same protocols.
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
        Count the protocols of a member no more.
        """
        self._offered.subtract(protocol.name for protocol in protocols)

    def offers_any(self, protocols: Iterable[MemberProtocol], everyone: int) -> bool:
        """
        Whether all of that many members offer one of these protocols.
        """
        return any(self._offered[protocol.name] == everyone for protocol in protocols)

    def elect(self, members: Collection[Member]) -> str:
        """
        The protocol with the most votes. A tie goes to the one that was voted for first.
        """
        everyone = len(members)
        candidates = {name for name, count in self._offered.items() if count == everyone}
        votes = Counter(member.vote(candidates) for member in members)
        return max(votes, key=votes.__getitem__)
