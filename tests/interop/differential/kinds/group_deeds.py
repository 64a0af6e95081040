"""
What happens to groups of every type, by their members and by others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from tests.interop.differential.membership import SECONDS_TO_SETTLE, Member, Pause, describe_groups
from tests.interop.differential.scripts import ACTS, Script
from tests.interop.differential.share_membership import ShareMember
from tests.interop.differential.steps import Ask, Step, fixed
from tests.support.config_requests import GROUP, SET, change
from tests.support.group_requests import offset_delete_request

M = TypeVar("M", bound=Member | ShareMember)
Odd = Sequence[Callable[[], Step]]


@dataclass
class Deeds(Generic[M]):
    """
    A group with four members.
    """

    script: Script
    group: str
    members: list[M] = field(init=False)

    def do(self, *steps: Step) -> None:
        for step in steps:
            self.script.do(step)

    # What members do

    def beat(self, member: M) -> None:
        """
        Send the heartbeat of a member that does as it is told.
        """
        raise NotImplementedError

    def all_beat(self, _member: M) -> None:
        for member in self.members:
            self.beat(member)

    # What others do

    @property
    def asked_groups(self) -> list[str]:
        return [self.group, f"{self.group}.none", ""]

    def look(self) -> None:
        """
        Look at the group and at groups that do not exist.
        """
        version = self.script.chance.choice((4, 5, 6))
        self.do(describe_groups("", self.asked_groups, version))

    def set(self, name: str, value: str, seconds: float = SECONDS_TO_SETTLE) -> None:
        """
        Set an option of the group, and wait until it is in force.
        """
        request = change(GROUP, self.group, (name, SET, value))
        self.do(Ask(f"{self.group}: {name}={value}", 1, lambda _: request), Pause(seconds))

    def set_one(self, *options: tuple[str, str], seconds: float = SECONDS_TO_SETTLE) -> None:
        self.set(*self.script.chance.choice(options), seconds)

    def delete(self) -> None:
        self.do(fixed(f"delete {self.group}", 2, "delete_groups", groups_names=[self.group]))

    def delete_offsets(self) -> None:
        request = offset_delete_request(self.group, {self.script.topic: [0, 1]})
        self.do(Ask(f"delete offsets of {self.group}", 0, lambda _: request))

    def delete_topic(self, name: str, seconds: float = SECONDS_TO_SETTLE) -> None:
        request = {"topic_names": [name], "timeout_ms": 30_000}
        self.do(fixed(f"delete {name}", 4, "delete_topics", **request), Pause(seconds))

    def grow(self, seconds: float = SECONDS_TO_SETTLE) -> None:
        self.script.create_partitions(self.script.partitions + 1)
        self.do(Pause(seconds))

    def play(
        self,
        by_members: Sequence[Callable[[M], None]],
        by_others: Sequence[Callable[[], None]],
        *,
        count: int = 28,
        of_others: float = 0.1,
    ) -> None:
        """
        Let something happen *count* times in each act.

        Args:
            of_others: the share of what others do.
        """
        chance = self.script.chance
        for act in range(ACTS):
            for _ in range(count):
                if chance.random() < of_others:
                    chance.choice(by_others)()
                else:
                    chance.choice(by_members)(chance.choice(self.members))
            self.look()
            if act < ACTS - 1:
                self.script.next_act()
