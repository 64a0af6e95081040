"""
The creation of the internal topics of streams programs, beside the heartbeats that need them.

A heartbeat is answered at once: its member is told that topics are missing, and a later heartbeat
finds them. Why a topic could not be created is told to the heartbeats of the next seconds, which do
not try again (Kafka's ``AutoTopicCreationManager``).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from barnabas.protocol.errors import KafkaError
from barnabas.protocol.messages.create_topics import CreatableTopic
from barnabas.protocol.structs import NamedTuple

if TYPE_CHECKING:
    from barnabas.coordination.clock import ServerClock
    from barnabas.coordination.topics.creation import Charge
    from barnabas.server.scheduling.background import Background
    from barnabas.server.topics.topics import Topics

log = logging.getLogger(__name__)

MOST_FAILURES: Final = 1000


class _Failure(NamedTuple):
    sentence: str
    until_ms: int


class InternalTopicCreation:
    """
    Creates topics in the background.

    Invariants:

    1. No topic is created twice at a time, nor while its last failure is told.

    Used on the event loop's thread only.
    """

    def __init__(self, topics: Topics, background: Background, clock: ServerClock) -> None:
        self._topics = topics
        self._background = background
        self._clock = clock
        self._begun: set[str] = set()
        self._failures: dict[str, _Failure] = {}

    def begin(
        self, wanted: Mapping[str, CreatableTopic], charge: Charge | None, told_ms: int
    ) -> None:
        """
        Begin to create topics.

        Args:
            charge: counts their partitions.
            told_ms: the time for which failures are told.
        """
        failed = self.failures(wanted)
        names = [name for name in wanted if name not in failed and name not in self._begun]
        if names:
            self._begun.update(names)
            work = self._create([wanted[name] for name in names], charge, told_ms)
            self._background.spawn(f"create topics {', '.join(names[:3])}", work)

    def failures(self, names: Iterable[str]) -> dict[str, str]:
        """
        Why topics could not be created a moment ago.
        """
        now_ms = self._clock.now_ms()
        found = ((name, self._failures.get(name)) for name in names)
        return {
            name: failure.sentence
            for name, failure in found
            if failure is not None and failure.until_ms > now_ms
        }

    async def _create(
        self, topics: list[CreatableTopic], charge: Charge | None, told_ms: int
    ) -> None:
        names = [topic.name for topic in topics]
        try:
            plan = await self._topics.create(topics, charge=charge)
        except KafkaError as error:
            self._note(dict.fromkeys(names, error), told_ms)
        else:
            self._note(plan.errors, told_ms)
        finally:
            self._begun.difference_update(names)

    def _note(self, errors: Mapping[str, KafkaError], told_ms: int) -> None:
        now_ms = self._clock.now_ms()
        for name, error in errors.items():
            log.warning("Internal topic %s could not be created: %s", name, error)
            self._failures.pop(name, None)
            sentence = str(error) or error.code.sentence
            self._failures[name] = _Failure(sentence, now_ms + told_ms)
        # The oldest failures come first.
        for name, failure in [*self._failures.items()]:
            if failure.until_ms > now_ms and len(self._failures) <= MOST_FAILURES:
                break
            del self._failures[name]
