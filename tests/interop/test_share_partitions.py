"""
Share-partitions beside Apache Kafka's own class ``SharePartition``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.java_programs import run_program
from tests.support.share_partition import RandomScript

pytestmark = pytest.mark.interop

SOURCE = Path(__file__).parent / "java" / "SharePartitions.java"
SCRIPTS = 400
COMMANDS = 60
STUMBLES = ("error:IllegalStateException", "error:NullPointerException")
"""
Kafka's own class fails where it does not find a state that it looks for. A script ends there.
"""


def test_random_commands_have_the_same_effects_as_in_apache_kafka() -> None:
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
            if kafkas.startswith(STUMBLES):
                break
            assert comparable(kafkas, line) == comparable(ours, line), (seed, number, line)


def comparable(answer: str, line: str) -> list[str]:
    """
    The parts of an answer. Kafka writes once for each lock that ends, we for all of them.
    """
    gave, written, state = answer.split(" | ")
    if line.startswith("time"):
        parts = (part for one in written.split(",") for part in one.split("/")[2:])
        written = " ".join(sorted(parts))
    return [gave, written, state]
