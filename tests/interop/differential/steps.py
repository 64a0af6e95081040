"""
What a workload does, one step after the other.

A step is run against each broker on its own and returns what can be compared: an answer, or a text.
Its own text says what it does, so that a failure can be read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

from barnabas.protocol.codec.schema import Message
from tests.interop.differential.recipes import Batch
from tests.interop.differential.sides import CLOSED, PAUSE, SILENT, Session
from tests.support.build import api_request
from tests.support.config_requests import DELETE, SET, TOPIC, change
from tests.support.topic_requests import creatable

EARLIEST: Final = -2
LATEST: Final = -1
PATIENCE: Final = 90.0
"""Seconds within which a change that was accepted has to be seen."""
NOT_YET: Final = frozenset({3, 5, 6})
"""Errors of a partition that the broker is about to lead."""
MARK: Final = "flush.ms"
"""The config by which it is seen that earlier changes of a topic's configs are in force."""


class Answer(NamedTuple):
    """
    A message, and the version in which it was written.

    Args:
        only_of: the workload that it has to do with, where it may tell of others, and order and
            wording do not matter.
    """

    message: Any
    version: int
    only_of: int | None = None


class Step(Protocol):
    async def run(self, session: Session) -> Any:
        """
        Do it to one of the brokers; what comes of it.
        """

    def __str__(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Ask:
    """
    Send a request and compare the answers.

    Args:
        make: gets the session, since topic ids differ.
        learn: what is remembered of the answer for later.
        alone: whether no other workload may do the like at the same time.
    """

    text: str
    version: int
    make: Callable[[Session], Message]
    learn: Callable[[Session, Any], None] | None = None
    alone: bool = False

    async def run(self, session: Session) -> Any:
        message = await session.ask(self.make(session), self.version)
        if isinstance(message, str):
            return message
        if self.learn is not None:
            self.learn(session, message)
        return Answer(message, self.version)

    def __str__(self) -> str:
        return f"{self.text} (v{self.version})"


@dataclass(frozen=True, slots=True)
class Tell:
    """
    Send a request that has no answer, and wait until it is done with.
    """

    text: str
    version: int
    make: Callable[[Session], Message]

    async def run(self, session: Session) -> Any:
        await session.tell(self.make(session), self.version)
        # One connection's requests are worked off in their order.
        answer = await session.ask(list_offsets_request("none", {0: LATEST}), 1)
        return answer if isinstance(answer, str) else "done"

    def __str__(self) -> str:
        return f"{self.text} (v{self.version}, no answer)"


@dataclass(frozen=True, slots=True)
class Ready:
    """
    Wait until the broker leads partitions.
    """

    topic: str
    partitions: int

    async def run(self, session: Session) -> Any:
        request = list_offsets_request(self.topic, dict.fromkeys(range(self.partitions), LATEST))
        codes: list[int] | str = SILENT
        for _ in range(round(PATIENCE / PAUSE)):
            answer = await session.ask(request, 5)
            codes = (
                answer
                if isinstance(answer, str)
                else [p.error_code for p in answer.topics[0].partitions]
            )
            if codes != CLOSED and not NOT_YET.intersection(codes):
                break
            await asyncio.sleep(PAUSE)
        await session.side.learn_topics()
        return f"ready: {codes}"

    def __str__(self) -> str:
        return f"wait until {self.partitions} partitions are led"


@dataclass(frozen=True, slots=True)
class Configured:
    """
    Wait until earlier changes of a topic's configs are in force.

    A broker sees a change before it acts on it, and handles changes one after the other. So once a
    second change is seen, the first is acted on.
    """

    topic: str
    number: int

    async def run(self, session: Session) -> Any:
        for number in (2 * self.number, 2 * self.number + 1):
            value = str(10**15 + number)
            await session.ask(alter_configs_request(self.topic, {MARK: value}), 1)
            for _ in range(round(PATIENCE / PAUSE)):
                if await self._mark(session) == value:
                    break
                await asyncio.sleep(PAUSE)
            else:
                return "the change is not seen"
        return "in force"

    async def _mark(self, session: Session) -> str | None:
        answer = await session.ask(describe_configs_request(self.topic, MARK), 4)
        if isinstance(answer, str):
            return answer
        (config,) = answer.results[0].configs
        return str(config.value)

    def __str__(self) -> str:
        return "wait until the configs are in force"


def fixed(text: str, version: int, api: str, **fields: Any) -> Step:
    """
    The same request to both brokers.
    """
    request = api_request(api, **fields)
    return Ask(text, version, lambda _: request)


def create_topic(name: str, partitions: int = 1, configs: Mapping[str, str] | None = None) -> Step:
    topic = creatable(name, partitions, configs=configs or {})
    more = f", {partitions} partitions, {configs}" if configs is not None else ""
    return fixed(f"create {name}{more}", 7, "create_topics", topics=[topic])


def list_offsets_request(
    topic: str, timestamps: Mapping[int, int], *, isolation: int = 0
) -> Message:
    partitions = [
        {"partition_index": partition, "current_leader_epoch": -1, "timestamp": timestamp}
        for partition, timestamp in timestamps.items()
    ]
    return api_request(
        "list_offsets",
        replica_id=-1,
        isolation_level=isolation,
        topics=[{"name": topic, "partitions": partitions}],
        timeout_ms=5000,
    )


def describe_configs_request(topic: str, *names: str, synonyms: bool = False) -> Message:
    """
    Read configs of a topic, all of them without *names*.
    """
    resource = {
        "resource_type": TOPIC,
        "resource_name": topic,
        "configuration_keys": names or None,
    }
    return api_request("describe_configs", resources=[resource], include_synonyms=synonyms)


def alter_configs_request(topic: str, changes: Mapping[str, str | None]) -> Message:
    """
    Set options of a topic, or delete those whose new value is None.
    """
    return change(
        TOPIC,
        topic,
        *((name, DELETE if value is None else SET, value) for name, value in changes.items()),
    )


def produce_request(
    session: Session,
    topic: str,
    data: Mapping[int, bytes | None],
    *,
    version: int = 9,
    acks: int = -1,
    transactional_id: str | None = None,
) -> Message:
    partitions = [{"index": index, "records": records} for index, records in data.items()]
    named = session.named(topic, by_id=version >= 13)
    return api_request(
        "produce",
        transactional_id=transactional_id,
        acks=acks,
        timeout_ms=30_000,
        topic_data=[{"partition_data": partitions, **named}],
    )


class FetchFrom(NamedTuple):
    offset: int
    partition: int = 0
    partition_max_bytes: int = 1 << 20
    max_bytes: int = 1 << 26
    isolation: int = 0
    current_leader_epoch: int = -1
    last_fetched_epoch: int = -1

    def request(self, session: Session, topic: str, version: int) -> Message:
        partition = {
            "partition": self.partition,
            "current_leader_epoch": self.current_leader_epoch,
            "fetch_offset": self.offset,
            "last_fetched_epoch": self.last_fetched_epoch if version >= 12 else -1,
            "partition_max_bytes": self.partition_max_bytes,
        }
        named = session.named(topic, "topic", by_id=version >= 13)
        return api_request(
            "fetch",
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=self.max_bytes,
            isolation_level=self.isolation,
            topics=[{"partitions": [partition], **named}],
        )


def produce(
    topic: str,
    partition: int,
    batches: Sequence[Batch],
    *,
    version: int,
    acks: int,
    transactional_id: str | None = None,
) -> Step:
    text = f"produce to {partition}, acks {acks}: " + "; ".join(map(str, batches))
    if transactional_id is not None:
        text += f" [transactional id {transactional_id}]"

    def make(session: Session) -> Message:
        data = b"".join(batch.build() for batch in batches)
        return produce_request(
            session,
            topic,
            {partition: data},
            version=version,
            acks=acks,
            transactional_id=transactional_id,
        )

    return Ask(text, version, make) if acks else Tell(text, version, make)
