"""
Writing down a workload: what the kinds of workloads are made with.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from barnabas.protocol.compression import CompressionType
from tests.interop.differential.recipes import Batch, Producer
from tests.interop.differential.steps import (
    LATEST,
    Ask,
    Configured,
    FetchFrom,
    Ready,
    Step,
    alter_configs_request,
    create_topic,
    describe_configs_request,
    fixed,
    list_offsets_request,
    produce,
)
from tests.support.config_requests import trim
from tests.support.transaction_requests import marker, markers_request

ACTS: Final = 3
"""Both brokers are stopped cleanly after the first act, and killed after the second."""
MINUTE_MS: Final = 60_000
HOUR_MS: Final = 60 * MINUTE_MS
SPECIAL_TIMESTAMPS: Final = (-1, -2, -3, -4, -5, -6, -7)
CODECS: Final = tuple(CompressionType)


@dataclass(frozen=True, slots=True)
class Workload:
    """
    What is done to one topic of its own, in acts between which the brokers are restarted.
    """

    kind: str
    seed: int
    topic: str
    acts: tuple[tuple[Step, ...], ...]
    loosely: bool = False

    @property
    def name(self) -> str:
        return f"{self.seed}, {self.kind}"

    def replayed_by(self) -> str:
        return f"pytest tests/interop/differential --seed {self.seed}"


@dataclass(slots=True)
class Script:
    """
    A workload as it is being written.

    Args:
        started_ms: when the run started. Timestamps of records lie hours before it, so that a time
            taken from a broker's clock can be told from one that was sent.
        loosely: whether the brokers compress the records to other bytes.
    """

    seed: int
    kind: str
    started_ms: int
    topic: str = ""
    partitions: int = 1
    loosely: bool = False
    act: int = 0
    chance: random.Random = field(default_factory=random.Random)
    ends: dict[int, int] = field(default_factory=dict)
    _acts: list[list[Step]] = field(default_factory=lambda: [[] for _ in range(ACTS)])
    _marks: int = 0

    def __post_init__(self) -> None:
        self.chance = random.Random(f"{self.kind} {self.seed}")
        self.topic = f"{self.kind}-{self.seed}"

    @property
    def now_ms(self) -> int:
        """
        The latest timestamp that is sent where nothing else is wanted.
        """
        return self.started_ms - 2 * HOUR_MS

    def workload(self) -> Workload:
        acts = tuple(map(tuple, self._acts))
        return Workload(self.kind, self.seed, self.topic, acts, self.loosely)

    def do(self, step: Step) -> None:
        self._acts[self.act].append(step)

    def next_act(self) -> None:
        """
        Both brokers go and come back: stopped the first time, killed the second.
        """
        self.act += 1
        self.do(Ready(self.topic, self.partitions))

    def create(self, partitions: int = 1, **configs: str | int) -> None:
        self.partitions = partitions
        named = {name.replace("_", "."): str(value) for name, value in configs.items()}
        self.do(create_topic(self.topic, partitions, named))
        self.do(Ready(self.topic, partitions))

    def produce(
        self,
        *batches: Batch,
        partition: int = 0,
        version: int | None = None,
        acks: int = -1,
        transactional_id: str | None = None,
    ) -> None:
        """
        Append; the end of the log is guessed, as if nothing were refused.
        """
        version = self.chance.choice((3, 7, 8, 9, 11, 12, 13)) if version is None else version
        if any(batch.codec == CompressionType.ZSTD for batch in batches):
            version = max(version, 7)
        self.do(
            produce(
                self.topic,
                partition,
                batches,
                version=version,
                acks=acks,
                transactional_id=transactional_id,
            )
        )
        self.ends[partition] = self.end(partition) + sum(len(batch.times) for batch in batches)

    def end(self, partition: int = 0) -> int:
        return self.ends.get(partition, 0)

    def list_offsets(self, timestamp: int, *, partition: int = 0, isolation: int = 0) -> None:
        request = list_offsets_request(self.topic, {partition: timestamp}, isolation=isolation)
        text = f"offset at {timestamp} of {partition}, isolation {isolation}"
        versions = (11,) if timestamp <= -4 else (7, 8, 11) if timestamp == -3 else (1, 2, 5, 10)
        version = self.chance.choice(versions)
        if isolation:
            version = max(version, 2)
        self.do(Ask(text, version, lambda _: request))

    def fetch(self, where: FetchFrom, version: int | None = None) -> None:
        version = self.chance.choice((4, 5, 7, 11, 12, 13, 16)) if version is None else version
        text = f"fetch {where}"
        self.do(Ask(text, version, lambda session: where.request(session, self.topic, version)))

    def end_of_epoch(self, epoch: int, *, partition: int = 0, current: int = -1) -> None:
        asked = {
            "partition": partition,
            "current_leader_epoch": current,
            "leader_epoch": epoch,
        }
        topics = [{"topic": self.topic, "partitions": [asked]}]
        text = f"end of leader epoch {epoch} of {partition}, current epoch {current}"
        version = self.chance.choice((2, 3, 4))
        self.do(fixed(text, version, "offset_for_leader_epoch", topics=topics))

    def delete_records(self, offset: int, *, partition: int = 0) -> None:
        request = trim(self.topic, (partition, offset))
        text = f"delete records of {partition} before {offset}"
        self.do(Ask(text, self.chance.choice((1, 2)), lambda _: request))

    def end_transaction(self, producer: Producer, *, commit: bool, coordinator_epoch: int) -> None:
        """
        Write the marker that the coordinator of transactions would write.
        """
        request = markers_request(
            marker(
                (producer.id, producer.epoch),
                {self.topic: [0]},
                commit=commit,
                coordinator_epoch=coordinator_epoch,
            )
        )
        text = f"{'commit' if commit else 'abort'} of {producer}, coordinator {coordinator_epoch}"
        self.do(Ask(text, 1, lambda _: request))
        self.ends[0] = self.end(0) + 1

    def alter(self, changes: Mapping[str, str | int | None]) -> None:
        """
        Change configs of the topic, None for the default, and wait until they are in force.
        """
        texts = {name: None if value is None else str(value) for name, value in changes.items()}
        request = alter_configs_request(self.topic, texts)
        self.do(Ask(f"alter configs {texts}", self.chance.choice((0, 1)), lambda _: request))
        self._marks += 1
        self.do(Configured(self.topic, self._marks))

    def describe_configs(self, *names: str) -> None:
        request = describe_configs_request(self.topic, *names, synonyms=True)
        text = f"describe configs {list(names) or 'all'}"
        self.do(Ask(text, self.chance.choice((1, 3, 4)), lambda _: request))

    def create_partitions(self, count: int) -> None:
        wanted = {"name": self.topic, "count": count, "assignments": None}
        fields = {"topics": [wanted], "timeout_ms": 30_000, "validate_only": False}
        text, version = f"create partitions, {count} in all", self.chance.choice((1, 2, 3))
        self.do(fixed(text, version, "create_partitions", **fields))
        self.partitions = max(self.partitions, count)
        self.do(Ready(self.topic, self.partitions))

    def probe(self, thoroughly: int = 4) -> None:
        """
        Look at the topic from all sides.
        """
        chance = self.chance
        for partition in range(self.partitions):
            end = self.end(partition)
            for timestamp in SPECIAL_TIMESTAMPS:
                self.list_offsets(timestamp, partition=partition, isolation=chance.randrange(2))
            for _ in range(thoroughly):
                self.list_offsets(
                    chance.choice((0, 1, self.now_ms)) - chance.randrange(-5, 3 * HOUR_MS),
                    partition=partition,
                )
                self.fetch(
                    FetchFrom(
                        chance.randrange(-1, end + 2),
                        partition,
                        chance.choice((0, 1, 61, 300, 1000, 4000, 1 << 20)),
                        chance.choice((0, 1, 1000, 1 << 26)),
                        chance.randrange(2),
                    )
                )
            for epoch in (0, 1, 2, 4, 7):
                self.end_of_epoch(epoch, partition=partition, current=chance.choice((-1, -1, 0, 2)))
            self.fetch(FetchFrom(end, partition, last_fetched_epoch=chance.randrange(5)), 12)
            self.fetch(FetchFrom(0, partition, current_leader_epoch=chance.randrange(5)), 11)


Kind = Callable[[Script], None]

__all__ = ["ACTS", "CODECS", "HOUR_MS", "LATEST", "MINUTE_MS", "Kind", "Script", "Workload"]
