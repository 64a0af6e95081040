"""
Hashes of topics beside those of Apache Kafka.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from barnabas.coordination.groups.modern.topics import SubscribedTopics, topic_hash
from tests.support.java_programs import run_program
from tests.support.topic_table import TopicTable

pytestmark = pytest.mark.interop

SOURCE = Path(__file__).parent / "java" / "Hashes.java"
NAMES = ("t", "topic-with-a-longer-name" * 8, "ä", "\U0001f600", "z\uffff", "a.b_c")
RACKS = ("", "rack-1", "ä", "\U0001f600", "\uffff", "r" * 100)


def test_topic_hashes_equal_kafkas() -> None:
    """
    Names and racks are ordered and measured in UTF-16 units.
    """
    seen = list(topics(random.Random(7)))

    output = run_program(SOURCE, lines=(line for line, _ in seen))

    assert [ours for _, ours in seen] == list(map(int, output.split()))


def topics(randomly: random.Random) -> Iterator[tuple[str, int]]:
    """
    Lines for the program, each with our own answer.
    """
    table = TopicTable()
    yield "\n", SubscribedTopics(table).hash([])
    for _ in range(60):
        table = TopicTable()
        names = randomly.sample(NAMES, randomly.randrange(1, len(NAMES)))
        for name in names:
            topic_id = UUID(int=randomly.getrandbits(128))
            racks = [
                randomly.sample(RACKS[1:], randomly.randrange(4))
                for _ in range(randomly.choice((1, 2, 3, 300)))
            ]
            halves = (signed(topic_id.int >> 64), signed(topic_id.int & (1 << 64) - 1))
            words = [*map(str, halves), name, *(",".join(each) for each in racks)]
            yield "\t".join(words) + "\n", topic_hash(topic_id, name, racks)
            # The hash of all of them is that of topics without racks.
        for name in names:
            topic_id = table.put(name, 3, UUID(int=randomly.getrandbits(128)))
            halves = (signed(topic_id.int >> 64), signed(topic_id.int & (1 << 64) - 1))
            ours = topic_hash(topic_id, name, [()] * 3)
            yield "\t".join([*map(str, halves), name, "", "", ""]) + "\n", ours
        yield "\n", SubscribedTopics(table).hash(names)


def signed(half: int) -> int:
    """
    A Java long.
    """
    return half - (1 << 64) if half >> 63 else half
