"""
Internal topics are created beside the heartbeats that miss them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from barnabas.coordination.topics.creation import CreationPlan
from barnabas.protocol.errors import KafkaError, PolicyViolation, TopicAlreadyExists
from barnabas.protocol.messages.create_topics import CreatableTopic
from barnabas.server.groups.topic_creation import MOST_FAILURES, InternalTopicCreation
from barnabas.server.scheduling.background import Background
from barnabas.testing.manual_clock import ManualClock
from tests.support.topic_requests import creatable

TOLD_MS = 10_000


class FakeTopics:
    """
    Takes topics when it is let, with the errors that it was given.
    """

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.errors: dict[str, KafkaError] = {}
        self.failure: KafkaError | None = None
        self.may_go_on = asyncio.Event()
        self.may_go_on.set()

    async def create(self, topics: Sequence[CreatableTopic], *, charge: Any) -> CreationPlan:
        self.asked.append([topic.name for topic in topics])
        await self.may_go_on.wait()
        if self.failure is not None:
            raise self.failure
        return CreationPlan(errors=dict(self.errors))


class World:
    def __init__(self) -> None:
        self.topics = FakeTopics()
        self.clock = ManualClock()
        background = Background(self.clock)
        self.creation = InternalTopicCreation(
            self.topics,  # type: ignore[arg-type]  # it is asked to create only
            background,
            self.clock,
        )

    async def begin(self, *names: str) -> None:
        wanted = {name: creatable(name) for name in names}
        self.creation.begin(wanted, None, TOLD_MS)
        for _ in range(5):
            await asyncio.sleep(0)


async def test_internal_topics_are_created_together() -> None:
    world = World()

    await world.begin("a", "b")

    assert [["a", "b"]] == world.topics.asked
    assert {} == world.creation.failures(["a", "b"])


async def test_topic_creation_is_not_repeated_while_in_progress() -> None:
    world = World()
    world.topics.may_go_on.clear()
    await world.begin("a")
    await world.begin("a", "b")

    world.topics.may_go_on.set()
    await world.begin()
    await world.begin("a")

    assert [["a"], ["b"], ["a"]] == world.topics.asked


async def test_failed_topic_creation_is_reported_for_a_while_without_a_retry() -> None:
    world = World()
    world.topics.errors = {"a": TopicAlreadyExists("There is one.")}
    await world.begin("a", "b")
    assert {"a": "There is one."} == world.creation.failures(["a", "b"])

    await world.begin("a")
    assert 1 == len(world.topics.asked)
    world.clock.advance(TOLD_MS / 1000)
    assert {} == world.creation.failures(["a"])
    await world.begin("a")

    assert 2 == len(world.topics.asked)


async def test_failure_of_the_whole_creation_is_reported_for_each_topic() -> None:
    world = World()
    world.topics.failure = PolicyViolation()

    await world.begin("a", "b")

    sentence = PolicyViolation.code.sentence
    assert {"a": sentence, "b": sentence} == world.creation.failures(["a", "b"])


async def test_number_of_remembered_failures_is_bounded() -> None:
    world = World()
    names = [str(number) for number in range(MOST_FAILURES + 5)]
    world.topics.errors = dict.fromkeys(names, TopicAlreadyExists("x"))

    await world.begin(*names)

    assert names[5:] == list(world.creation.failures(names))
