"""
Lives of groups, for the program that lets Apache Kafka's coordinator live them too.
"""

from __future__ import annotations

import random
from itertools import product
from uuid import UUID

from barnabas.coordination.groups.assignors import (
    range_assignor,
    simple_assignor,
    sticky_assignor,
    uniform_assignor,
)
from barnabas.coordination.groups.assignors.members import member_order
from barnabas.coordination.groups.assignors.spec import (
    Assignment,
    GroupSpec,
    MemberSpec,
    SubscriptionType,
    TopicIds,
    is_same,
)
from barnabas.coordination.groups.assignors.tasks import (
    NO_TASKS,
    StreamsMemberSpec,
    SubtopologySpec,
    Tasks,
    TasksTuple,
)

ASSIGN = {
    "range": range_assignor.assign,
    "uniform": uniform_assignor.assign,
    "simple": simple_assignor.assign,
}
COLLIDING = ["".join(parts) for parts in product(("Aa", "BB"), repeat=5)]
"""
Strings with the same hash code.
"""


class Model:
    """
    A group as a coordinator keeps it, with our assignor.
    """

    def __init__(self, assignor: str) -> None:
        self.assignor = assignor
        self.topics: dict[str, tuple[UUID, int]] = {}
        self.assignable: dict[UUID, frozenset[int]] = {}
        self.names: dict[str, tuple[str, ...]] = {}
        self.instances: dict[str, str | None] = {}
        self.targets: dict[str, Assignment] = {}
        self.largest = 0

    def heartbeat(self, member_id: str, instance_id: str | None, names: list[str]) -> str:
        """
        Let a member join or change, and return the targets that are new.
        """
        replaced = self.static_member(instance_id)
        replaced = None if replaced == member_id else replaced
        spec = self.group_spec(member_id, instance_id, names, replaced)
        counts = dict(self.topics.values())
        assignments = ASSIGN[self.assignor](spec, counts)
        assert assignments.keys() == spec.members.keys()
        if replaced is not None:
            self.leave(replaced)
        self.names[member_id] = tuple(sorted(set(names)))
        self.instances[member_id] = instance_id
        self.largest = max(self.largest, len(self.names))
        answer = []
        for changed in spec.members:
            new, old = assignments[changed], self.targets.get(changed)
            if old is None or not is_same(new, old):
                self.targets[changed] = new
                answer.append(f"{changed}={shown(new)}")
            else:
                assert new is old
        return "\t".join(answer)

    def group_spec(
        self, updated: str, instance_id: str | None, names: list[str], replaced: str | None
    ) -> GroupSpec:
        topic_ids = {name: topic_id for name, (topic_id, _) in self.topics.items()}
        shared = {names: TopicIds.of_names(names, topic_ids) for names in self.names.values()}
        subscriptions = {m: shared[names] for m, names in self.names.items()}
        subscriptions[updated] = TopicIds.of_names(names, topic_ids)
        targets = self.targets
        if replaced is not None:
            targets = targets | {updated: targets[replaced]}
        order = member_order(self.names, largest=self.largest, updated=updated, replaced=replaced)
        instances = self.instances | {updated: instance_id}
        members = {
            m: MemberSpec(
                subscriptions[m],
                targets.get(m, {}),
                instances[m],
                inherits=m == updated and replaced is not None,
            )
            for m in order
        }
        all_names = {m: frozenset(self.names.get(m, ())) for m in order}
        all_names[updated] = frozenset(names)
        is_homogeneous = len(set(all_names.values())) == 1
        return GroupSpec(
            members,
            SubscriptionType.HOMOGENEOUS if is_homogeneous else SubscriptionType.HETEROGENEOUS,
            self.assignable if self.assignor == "simple" else None,
        )

    def static_member(self, instance_id: str | None) -> str | None:
        if instance_id is None:
            return None
        return next((m for m, i in self.instances.items() if i == instance_id), None)

    def leave(self, member_id: str) -> None:
        del self.names[member_id], self.instances[member_id]
        self.targets.pop(member_id, None)


def shown(assignment: Assignment) -> str:
    return ";".join(
        f"{topic_id.hex}:{','.join(map(str, numbers))}" for topic_id, numbers in assignment.items()
    )


class Script:
    """
    The life of a group: lines for the program, and the answers that we would give.
    """

    def __init__(self, assignor: str, seed: int) -> None:
        self.choose = random.Random(seed)
        self.model = Model(assignor)
        self.lines = [f"group\t{assignor}\t0"]
        self.answers: list[str] = []

    def set_topic(self, name: str, topic_id: UUID, count: int) -> None:
        model = self.model
        model.topics[name] = topic_id, count
        self.lines.append(f"topic\t{name}\t{topic_id.hex}\t{count}")
        if model.assignor == "simple" and (
            added := [n for n in range(count) if self.choose.random() < 0.9]
        ):
            before = model.assignable.get(topic_id, frozenset())
            model.assignable[topic_id] = before | frozenset(added)
            self.lines.append(f"assignable\t{topic_id.hex}\t{','.join(map(str, added))}")

    def heartbeat(self, member_id: str, instance_id: str | None, names: list[str]) -> None:
        rack = self.choose.choice(["-", "r1", "r2"])
        self.lines.append(f"member\t{member_id}\t{instance_id or '-'}\t{rack}\t{','.join(names)}")
        self.answers.append(self.model.heartbeat(member_id, instance_id, names))

    def leave(self, member_id: str) -> None:
        self.lines.append(f"leave\t{member_id}")
        self.model.leave(member_id)


class RandomScript(Script):
    """
    A life in which everything changes.
    """

    def __init__(self, assignor: str, seed: int) -> None:
        super().__init__(assignor, seed)
        self.made = 0
        choose = self.choose
        self.member_limit = choose.choice([2, 5, 10, 16, 32, 40])
        self.partition_limit = choose.choice([1, 4, 12, 40, 150])
        if choose.random() < 0.08:
            self.partition_limit = 700
        self.is_mixed = choose.random() < 0.5
        self.is_static = assignor != "simple" and choose.random() < 0.4
        self.ids = list(COLLIDING) if choose.random() < 0.1 else []
        for _ in range(choose.choice([1, 2, 3, 6, 10, 20])):
            self.new_topic()
        self.shared = self.some_names()

    def run(self, rounds: int) -> None:
        for _ in range(rounds):
            what = self.choose.random()
            present = list(self.model.names)
            if what < 0.1:
                self.change_topics()
            elif what < 0.25 and present:
                self.leave(self.choose.choice(present))
            elif what < 0.45 and present:
                self.change(self.choose.choice(present))
            elif len(present) < self.member_limit:
                for _ in range(self.choose.choice([1, 1, 2, 8])):
                    self.join()

    def new_topic(self) -> None:
        self.made += 1
        name = self.choose.choice(["topic-{}", "t{}", "a.rather.long.name.of.topic.{}"])
        name = name.format(self.made)
        topic_id = UUID(int=self.choose.getrandbits(128))
        self.set_topic(name, topic_id, self.choose.randrange(1, self.partition_limit + 1))

    def change_topics(self) -> None:
        what = self.choose.random()
        topics = self.model.topics
        if what < 0.3 or not topics:
            self.new_topic()
            return
        name = self.choose.choice(list(topics))
        topic_id, count = topics[name]
        if what < 0.5:
            del topics[name]
            self.lines.append(f"delete\t{name}")
        elif what < 0.8:
            self.set_topic(name, topic_id, count + self.choose.randrange(1, 20))
        else:
            self.shared = self.some_names()

    def some_names(self) -> list[str]:
        known = list(self.model.topics) + (["missing", "absent"] if self.chance(0.1) else [])
        names = self.choose.sample(known, self.choose.randrange(len(known) + 1))
        return names or known[:1] if self.chance(0.95) else []

    def chance(self, part: float) -> bool:
        return self.choose.random() < part

    def names(self) -> list[str]:
        if self.is_mixed and self.chance(0.6):
            return self.some_names()
        return self.choose.sample(self.shared, len(self.shared))

    def join(self) -> None:
        if self.ids:
            member_id = self.ids.pop(self.choose.randrange(len(self.ids)))
        else:
            bits = self.choose.getrandbits(128)
            member_id = self.choose.choice([f"{UUID(int=bits)}", f"m{bits % 1000}"])
        if member_id in self.model.names:
            return
        instance_id = None
        if self.is_static and self.chance(0.6):
            instance_id = f"i{self.choose.randrange(2 * self.member_limit)}"
        self.heartbeat(member_id, instance_id, self.names())

    def change(self, member_id: str) -> None:
        self.heartbeat(member_id, self.model.instances[member_id], self.names())


class CrowdedScript(RandomScript):
    """
    A group of 16 members or more that has waited for two large topics: they get their partitions in
    turn, since one of them has another topic, too.
    """

    def __init__(self, assignor: str, seed: int) -> None:
        super().__init__(assignor, seed)
        self.set_topic("small", UUID(int=self.choose.getrandbits(128)), 2)
        self.is_static = self.is_mixed = False
        self.shared = ["large", "other"]
        self.member_limit = self.choose.choice([16, 32, 64])
        self.heartbeat("first", None, [*self.shared, "small"])
        while len(self.model.names) < self.member_limit:
            self.join()
        for name in self.shared:
            count = self.member_limit * self.choose.randrange(20, 40)
            self.set_topic(name, UUID(int=self.choose.getrandbits(128)), count)
        self.heartbeat("first", None, [*self.shared, "small"])
        self.member_limit += 3

    def change_topics(self) -> None:
        """
        The topics stay.
        """

    def change(self, member_id: str) -> None:
        self.heartbeat(member_id, None, self.shared + ["small"] * self.chance(0.3))


class ChainScript(Script):
    """
    A group in which each member shares a topic with the next one. What a newcomer takes at one end
    reaches the other end many rounds of balancing later.
    """

    def __init__(self, assignor: str, seed: int) -> None:
        super().__init__(assignor, seed)
        choose = self.choose
        self.step = choose.choice([1, 2, 5])
        self.length = choose.randrange(18, 32)
        for at in range(self.length):
            self.set_topic(f"t{at}", UUID(int=choose.getrandbits(128)), 100 + self.step * at)

    def run(self, rounds: int) -> None:
        for at in range(self.length - 1):
            self.heartbeat(f"m{at}", None, [f"t{at}", f"t{at + 1}"])
        for at in range(rounds):
            end = self.choose.choice([0, self.length - 1])
            self.heartbeat(f"x{at}", None, [f"t{end}"])


class StreamsScript:
    """
    A random life of a streams group: the same for tasks.
    """

    def __init__(self, seed: int) -> None:
        self.choose = random.Random(seed)
        choose = self.choose
        self.replicas = choose.choice([0, 0, 1, 1, 2, 3])
        self.lines = [f"group\tsticky\t{self.replicas}"]
        self.answers: list[str] = []
        self.processes: dict[str, str] = {}
        self.targets: dict[str, TasksTuple] = {}
        self.topology: dict[str, SubtopologySpec] = {}
        self.largest = 0
        self.member_limit = choose.choice([1, 3, 6, 12, 30])
        self.process_limit = choose.choice([1, 2, 4, 20])
        self.task_limit = choose.choice([1, 5, 20, 60])
        for _ in range(choose.randrange(1, 7)):
            self.set_subtopology(f"{choose.randrange(12)}")

    def run(self, rounds: int) -> None:
        for _ in range(rounds):
            what = self.choose.random()
            present = list(self.processes)
            if what < 0.07:
                self.set_subtopology(f"{self.choose.randrange(12)}")
            elif what < 0.3 and present:
                self.leave(self.choose.choice(present))
            elif what < 0.45 and present:
                self.heartbeat(self.choose.choice(present))
            elif len(present) < self.member_limit:
                for _ in range(self.choose.choice([1, 1, 2, 8])):
                    self.heartbeat(f"{UUID(int=self.choose.getrandbits(128))}")

    def set_subtopology(self, subtopology_id: str) -> None:
        count = self.choose.randrange(1, self.task_limit + 1)
        old = self.topology.get(subtopology_id, SubtopologySpec(0, self.choose.random() < 0.6))
        spec = SubtopologySpec(old.task_count + count, old.is_stateful)
        self.topology[subtopology_id] = spec
        state = "stateful" if spec.is_stateful else "stateless"
        self.lines.append(f"subtopology\t{subtopology_id}\t{spec.task_count}\t{state}")

    def leave(self, member_id: str) -> None:
        self.lines.append(f"leave\t{member_id}")
        del self.processes[member_id], self.targets[member_id]

    def heartbeat(self, member_id: str) -> None:
        process_id = self.processes.get(member_id)
        if process_id is None or self.choose.random() < 0.1:
            process_id = f"process-{self.choose.randrange(self.process_limit)}"
        self.lines.append(f"member\t{member_id}\t{process_id}\t-")
        order = member_order(self.processes, largest=self.largest, updated=member_id)
        self.processes[member_id] = process_id
        self.largest = max(self.largest, len(self.processes))
        members = {
            m: StreamsMemberSpec(self.processes[m], self.targets.get(m, NO_TASKS)) for m in order
        }
        assignments = sticky_assignor.assign(members, self.topology, self.replicas)
        answer = []
        for changed in order:
            new = assignments[changed]
            if changed not in self.targets or new != self.targets[changed]:
                self.targets[changed] = new
                answer.append(f"{changed}={'|'.join(map(shown_tasks, new))}")
        self.answers.append("\t".join(answer))


def shown_tasks(tasks: Tasks) -> str:
    return ";".join(
        f"{subtopology}:{','.join(map(str, numbers))}" for subtopology, numbers in tasks.items()
    )
