"""
What the clients of a history do, and which faults they meet: drawn from a seed.

A plan has no times: each client takes its steps one after the other, and a fault happens when a
part of all steps is done. Any plan without some of its steps is a plan, so that plans can shrink.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Final, NamedTuple

CODECS: Final = (0, 0, 1, 2, 3, 4)
GONE: Final = "gone"
"""
A topic that is deleted and created again.
"""


class Actor(NamedTuple):
    name: str
    kind: str
    settings: Mapping[str, Any]


class Step(NamedTuple):
    number: int
    actor: str
    action: str
    values: Mapping[str, Any]


class PlannedFault(NamedTuple):
    when: float
    """The part of all steps that is done before."""
    kind: str
    values: Mapping[str, Any]


@dataclass(frozen=True)
class Plan:
    seed: int
    disk: str
    """``real``: the broker is a process on a directory; ``memory``: it is on a disk that fails."""
    topics: Mapping[str, int]
    actors: Sequence[Actor]
    steps: Sequence[Step]
    faults: Sequence[PlannedFault]
    ends_with_kill: bool = False
    reads_with_librdkafka: bool = False

    def __str__(self) -> str:
        lines = [f"seed {self.seed}, disk: {self.disk}, topics: {dict(self.topics)}"]
        used = {step.actor for step in self.steps}
        lines += [
            f"{actor.name}: {actor.kind} {_text(actor.settings)}"
            for actor in self.actors
            if actor.name in used
        ]
        lines += [f"  {s.number:3} {s.actor:16} {s.action} {_text(s.values)}" for s in self.steps]
        lines += [
            f"  at {f.when:4.0%} of the steps: {f.kind} {_text(f.values)}" for f in self.faults
        ]
        if self.ends_with_kill:
            lines.append("  at the end: kill")
        return "\n".join(lines)

    def without(self, steps: Sequence[Step], faults: Sequence[PlannedFault]) -> Plan:
        """
        The plan with these steps and faults only.
        """
        return replace(self, steps=tuple(steps), faults=tuple(faults))


def _text(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items())


def plan_of(seed: int, *, real_disk_only: bool = False) -> Plan:
    """
    The plan of a seed, which is always the same.
    """
    chance = Random(f"history {seed}")
    disk = "real" if real_disk_only or chance.random() < 0.7 else "memory"
    topics = {"a": chance.randint(1, 3), "b": chance.randint(1, 2), GONE: 1}
    actors = _actors(chance)
    drawn = [
        (actor, action, values)
        for actor in actors
        for action, values in _steps(actor, topics, chance)
    ]
    # Steps of all actors are mixed, those of each in order.
    order = [actor.name for actor, _, _ in drawn]
    chance.shuffle(order)
    waiting = {actor.name: [d for d in drawn if d[0] is actor] for actor in actors}
    steps = []
    for number, name in enumerate(order):
        _, action, values = waiting[name].pop(0)
        steps.append(Step(number, name, action, values))
    return Plan(
        seed,
        disk,
        topics,
        actors,
        steps,
        _faults(disk, chance),
        ends_with_kill=chance.random() < 0.5,
        reads_with_librdkafka=chance.random() < 0.15,
    )


def _actors(chance: Random) -> list[Actor]:
    kinds = ["producer"] * 3 + ["transactional"] * 3 + ["reader"] * 2
    kinds += ["classic", "modern", "share", "share", "transformer", "transformer", "admin"]
    kinds += ["librdkafka"]
    chosen = ["producer", "reader", *chance.choices(kinds, k=chance.randint(2, 5))]
    groups = {"classic", "modern", "share"}
    chosen += [kind for kind in chosen if kind in groups and chance.random() < 0.8]
    actors = []
    for number, kind in enumerate(chosen):
        settings: dict[str, Any] = {}
        if kind in ("producer", "transactional", "transformer"):
            settings["codec"] = chance.choice(CODECS)
            settings["timeout_s"] = chance.choice((0.1, 3.0, 3.0))
        if kind == "producer":
            settings["is_idempotent"] = chance.random() < 0.6
            settings["acks"] = -1 if settings["is_idempotent"] else chance.choice((0, 1, 1, -1))
            settings["in_flight"] = chance.choice((1, 2, 5))
            settings["retries"] = settings["is_idempotent"] or chance.random() < 0.5
        if kind in ("transactional", "transformer"):
            settings["version"] = chance.choice((1, 2))
        if kind == "transactional":
            # Few ids: two instances of one id fence each other.
            settings["transactional_id"] = chance.choice(("tx-1", "tx-1", "tx-2"))
        if kind == "transformer":
            settings["transactional_id"] = f"tx-{kind}"
            settings["group"] = "g-transform"
        if kind in groups:
            settings["group"] = f"g-{kind}"
        if kind in ("reader", "classic", "modern"):
            settings["is_committed"] = chance.random() < 0.5
            settings["max_bytes"] = chance.choice((200, 1 << 20))
        actors.append(Actor(f"{kind}-{number}", kind, settings))
    return actors


def _steps(
    actor: Actor, topics: Mapping[str, int], chance: Random
) -> list[tuple[str, dict[str, Any]]]:
    steps: list[tuple[str, dict[str, Any]]] = []
    for _ in range(chance.randint(4, 12)):
        before = {"transactional": "begin again", "reader": "seek to the beginning"}.get(actor.kind)
        if before is not None and chance.random() < 0.13:
            steps.append((before, {}))
        steps.append(_step(actor, topics, chance))
    return steps


def _step(  # noqa: PLR0911  # one for each kind
    actor: Actor, topics: Mapping[str, int], chance: Random
) -> tuple[str, dict[str, Any]]:
    topic = chance.choice(("a", "a", "a", "b"))
    place = {"topic": topic, "partition": chance.randrange(topics[topic])}
    what = chance.choices(("poll", "leave", "crash"), (8, 1, 1))[0]
    match actor.kind:
        case "producer" | "librdkafka":
            if chance.random() < 0.1:
                place = {"topic": GONE, "partition": 0}
            count = chance.randint(1, actor.settings.get("in_flight", 1))
            records, size = chance.choice((1, 2, 5, 20)), chance.choice((0, 10, 10, 1000))
            return "send", place | {"batches": count, "records": records, "size": size}
        case "transactional":
            sends = [
                (name, chance.randrange(topics[name]), chance.randint(1, 4))
                for name in chance.choices(("a", "a", "b"), k=chance.randint(1, 3))
            ]
            end = chance.choices(("commit", "abort", "leave open"), (6, 3, 1))[0]
            offsets = chance.randrange(1, 50) if chance.random() < 0.3 else None
            return "transaction", {"sends": sends, "offsets": offsets, "end": end}
        case "reader":
            return "poll", place
        case "classic" | "modern":
            is_late = actor.kind == "classic" and chance.random() < 0.2
            return what, {"commits": chance.random() < 0.8, "is_late": is_late}
        case "share":
            ways = chance.choices(("accept", "release", "reject", "nothing"), (5, 2, 1, 2), k=4)
            return what, {"ways": ways}
        case "transformer":
            end = chance.choices(("commit", "abort", "leave open"), (7, 2, 1))[0]
            return "transform", {"end": end, "most": chance.randint(1, 8)}
        case _:
            return _admin_step(topics, chance)


def _admin_step(topics: Mapping[str, int], chance: Random) -> tuple[str, dict[str, Any]]:
    match chance.randrange(5):
        case 0:
            return "delete and create", {"topic": GONE}
        case 1:
            return "grow", {"topic": "b", "count": topics["b"] + chance.randint(1, 2)}
        case 2:
            topic = chance.choice(("a", "b"))
            values = {"partition": chance.randrange(topics[topic]), "part": chance.random()}
            return "delete records", {"topic": topic, **values}
        case 3:
            name, value = chance.choice(
                (
                    ("compression.type", "zstd"),
                    ("compression.type", "producer"),
                    ("message.timestamp.type", "LogAppendTime"),
                    ("flush.messages", "1"),
                    ("index.interval.bytes", "0"),
                )
            )
            return "alter config", {
                "topic": chance.choice(("a", "b")),
                "name": name,
                "value": value,
            }
        case _:
            return "reset offsets", {
                "group": "g-reset",
                "topic": "a",
                "offset": chance.randrange(9),
            }


def _faults(disk: str, chance: Random) -> list[PlannedFault]:
    if disk == "real":
        kinds = ["kill", "kill", "kill", "pause", "pause", "full disk", "stop"]
    else:
        kinds = ["kill", "power loss", "failed write", "failed sync", "slow disk", "clock jump"]
    return [
        PlannedFault(round(chance.uniform(0.1, 0.95), 2), kind, {"ms": chance.choice((5, 50, 150))})
        for kind in chance.choices(kinds, k=chance.choice((0, 1, 1, 2)))
    ]
