"""
Share-partitions beside Apache Kafka's own class ``SharePartition``.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path

import pytest

from barnabas.coordination.share.coordinator.batches import combine
from barnabas.protocol.internal_topics.share_state_records import StateBatch
from tests.support.java_programs import run_program
from tests.support.share_partition import RandomScript

pytestmark = [pytest.mark.interop, pytest.mark.prove]

SOURCE = Path(__file__).parent / "java" / "SharePartitions.java"
SCRIPTS = 400
COMMANDS = 60
COMBINATIONS = 20_000
STUMBLES = ("error:IllegalStateException", "error:NullPointerException")
"""
Kafka's own class fails where it does not find a state that it looks for. A script ends there.
"""


def test_random_share_partition_commands_have_the_same_effects_as_in_kafka() -> None:
    """
    What is acquired, what is written, and the state of each offset after each command.
    """
    scripts = []
    for seed in range(SCRIPTS):
        script = RandomScript(seed)
        scripts.append([(line, script.ours.run(line)) for line in script.commands(COMMANDS)])

    lines = [f"{line}\n" for commands in scripts for line, _ in commands]
    answers = iter(run_program(SOURCE, lines=lines).splitlines())

    for seed, commands in enumerate(scripts):
        theirs = [next(answers) for _ in commands]
        for number, ((line, ours), kafkas) in enumerate(zip(commands, theirs, strict=True)):
            if kafkas.startswith(STUMBLES) or is_stuck(kafkas, line):
                break
            assert comparable(kafkas, line) == comparable(ours, line), (seed, number, line)


def is_stuck(answer: str, line: str) -> bool:
    """
    Whether the next fetch of Kafka's class is for offsets before its start, which the log has lost.
    It finds nothing from then on: the gap of what was stored does not follow the log start.
    """
    next_fetch_offset, start_offset, *_ = comparable(answer, line)[2].split()
    return int(next_fetch_offset) < int(start_offset)


def comparable(answer: str, line: str) -> list[str]:
    """
    The parts of an answer. Kafka writes once for each lock that ends, we for all of them.
    """
    gave, written, state = answer.split(" | ")
    if line.startswith("time"):
        parts = (part for one in written.split(",") for part in one.split("/")[2:])
        written = " ".join(sorted(parts))
    return [gave, written, state]


def test_share_state_batches_combine_as_in_kafka() -> None:
    choose = random.Random(3)
    cases = []
    for _ in range(COMBINATIONS):
        start = choose.choice([-1, 0, choose.randrange(40)])
        old, new = ([random_batch(choose) for _ in range(choose.randrange(6))] for _ in range(2))
        cases.append((start, old, new))

    lines = [
        " ".join(["combine", str(start), *map(text_of, old), "+", *map(text_of, new)]) + "\n"
        for start, old, new in cases
    ]
    answers = run_program(SOURCE, lines=lines).splitlines()

    for (start, old, new), theirs, line in zip(cases, answers, lines, strict=True):
        ours = combine([*old, *new], start)
        assert by_offset(theirs.split()) == by_offset(map(text_of, ours)), line
        assert len(ours) <= len(theirs.split()), line


def random_batch(choose: random.Random) -> StateBatch:
    first = choose.randrange(40)
    return StateBatch(
        first_offset=first,
        last_offset=first + choose.choice([0, 1, 5, 12]),
        delivery_state=choose.choice([0, 2, 4]),
        delivery_count=choose.randrange(1, 4),
    )


def text_of(batch: StateBatch) -> str:
    return f"{batch.first_offset}:{batch.last_offset}:{batch.delivery_state}:{batch.delivery_count}"


def by_offset(texts: Iterable[str]) -> dict[int, tuple[int, int]]:
    """
    The state and the count of each offset, in order. Kafka may leave equal neighbours apart.
    """
    found: dict[int, tuple[int, int]] = {}
    for text in texts:
        first, last, state, count = map(int, text.split(":"))
        assert first > max(found, default=-1), "batches are in order, and do not overlap"
        found |= dict.fromkeys(range(first, last + 1), (state, count))
    return found
