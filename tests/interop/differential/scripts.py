"""
Writing down a workload: what the kinds of workloads are made with.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from barnabas.protocol.compression import CompressionType
from barnabas.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from barnabas.protocol.messages.create_topics import (
    CreateTopicsRequest,
)
from barnabas.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from barnabas.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from barnabas.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.interop.differential.recipes import Batch, Producer
from tests.interop.differential.steps import (
    LATEST,
    Ask,
    Configured,
    FetchFrom,
    Ready,
    Step,
    alter_configs_request,
    list_offsets_request,
    produce,
)
from tests.support.config_requests import TOPIC
from tests.support.topic_requests import creatable
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
        """
        How to run this one alone.
        """
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
        """
        Any step.
        """
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
        topic = creatable(self.topic, partitions, configs=named)
        text = f"create {self.topic}, {partitions} partitions, {named}"
        self.do(Ask(text, 7, lambda _: CreateTopicsRequest(topics=[topic])))
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
        """
        About where the partition ends.
        """
        return self.ends.get(partition, 0)

    def list_offsets(self, timestamp: int, *, partition: int = 0, isolation: int = 0) -> None:
        """
        Ask for one offset.
        """
        request = list_offsets_request(self.topic, {partition: timestamp}, isolation=isolation)
        text = f"offset at {timestamp} of {partition}, isolation {isolation}"
        versions = (11,) if timestamp <= -4 else (7, 8, 11) if timestamp == -3 else (1, 2, 5, 10)
        version = self.chance.choice(versions)
        if isolation:
            version = max(version, 2)
        self.do(Ask(text, version, lambda _: request))

    def fetch(self, where: FetchFrom, version: int | None = None) -> None:
        """
        Read.
        """
        version = self.chance.choice((4, 5, 7, 11, 12, 13, 16)) if version is None else version
        text = f"fetch {where}"
        self.do(Ask(text, version, lambda session: where.request(session, self.topic, version)))

    def end_of_epoch(self, epoch: int, *, partition: int = 0, current: int = -1) -> None:
        """
        Ask where a leader epoch ends.
        """
        asked = OffsetForLeaderPartition(
            partition=partition, current_leader_epoch=current, leader_epoch=epoch
        )
        request = OffsetForLeaderEpochRequest(
            topics=[OffsetForLeaderTopic(topic=self.topic, partitions=[asked])]
        )
        text = f"end of leader epoch {epoch} of {partition}, current epoch {current}"
        self.do(Ask(text, self.chance.choice((2, 3, 4)), lambda _: request))

    def delete_records(self, offset: int, *, partition: int = 0) -> None:
        """
        Move the start of the log.
        """
        asked = DeleteRecordsPartition(partition_index=partition, offset=offset)
        request = DeleteRecordsRequest(
            topics=[DeleteRecordsTopic(name=self.topic, partitions=[asked])], timeout_ms=10_000
        )
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
        """
        Read configs of the topic, all of them without *names*.
        """
        resource = DescribeConfigsResource(
            resource_type=TOPIC, resource_name=self.topic, configuration_keys=list(names) or None
        )
        request = DescribeConfigsRequest(resources=[resource], include_synonyms=True)
        text = f"describe configs {list(names) or 'all'}"
        self.do(Ask(text, self.chance.choice((1, 3, 4)), lambda _: request))

    def create_partitions(self, count: int) -> None:
        """
        Ask for more partitions.
        """
        topic = CreatePartitionsTopic(name=self.topic, count=count, assignments=None)
        request = CreatePartitionsRequest(topics=[topic], timeout_ms=30_000, validate_only=False)
        self.do(
            Ask(
                f"create partitions, {count} in all",
                self.chance.choice((1, 2, 3)),
                lambda _: request,
            )
        )
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
