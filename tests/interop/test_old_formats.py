"""
Segments that brokers before Apache Kafka 0.11 left behind: both brokers serve them alike.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from barnabas.protocol.records.batch import batches
from tests.interop.clients.base import Client, NewRecord
from tests.interop.differential.sides import NEVER_MS, Pair, Session, Side
from tests.interop.differential.steps import Ready
from tests.support.legacy_logs import LegacyWriter
from tests.support.segments import FIRST_TIMESTAMP
from tests.support.server import fetch_request, fetch_topic, list_offsets_request
from tests.support.wire_client import WireClient

pytestmark = pytest.mark.prove

TOPICS = ("version-0", "version-1")
SEGMENTS, MESSAGES = 3, 120
CONFIGS = {"retention.ms": "-1", "index.interval.bytes": "300"}
SETTINGS = {
    # The first checkpoints are waited for.
    "log.initial.task.delay.ms": "500",
    "log.retention.check.interval.ms": NEVER_MS,
    "group.initial.rebalance.delay.ms": "0",
}

Named = Callable[[str], Client]


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    both = Pair(tmp_path, SETTINGS)
    with both.brokers:
        yield both


def with_old_segments(pair: Pair, client_named: Named) -> dict[str, int]:
    """
    Stop both brokers with a topic of each version; where its log ends.
    """
    client = client_named("confluent-kafka")
    asyncio.run(pair.each(Side.start))
    for side in pair.sides:
        for topic in TOPICS:
            client.create_topic(side.broker.bootstrap, topic, 1, CONFIGS)
    asyncio.run(pair.stop())
    ends = {}
    for magic, topic in enumerate(TOPICS):
        writer = LegacyWriter(Random(magic), magic=magic)
        content = [(writer.next_offset, writer.segment(MESSAGES)) for _ in range(SEGMENTS)]
        ends[topic] = writer.next_offset
        for side in pair.sides:
            directory = side.data / f"{topic}-0"
            for path in directory.glob("0*"):
                path.unlink()
            for base_offset, data in content:
                (directory / f"{base_offset:020d}.log").write_bytes(data)
    return ends


async def lead(side: Side) -> None:
    """
    Wait until the broker serves the topics.
    """
    session = Session(side)
    for topic in TOPICS:
        assert "ready: [0]" == await Ready(topic, 1).run(session)
    await session.close()


async def answers(pair: Pair, ends: dict[str, int]) -> list[list[dict[str, Any]]]:
    """
    What each broker answers to the same questions, once it serves the topics.
    """
    await asyncio.gather(*map(lead, pair.sides))
    return await asyncio.gather(*(_answers(side.broker.port, ends) for side in pair.sides))


async def _answers(port: int, ends: dict[str, int]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    async with await WireClient.open(port) as client:
        for topic, end in ends.items():
            for offset in (*range(0, end, 17), end - 1):
                for size in (1, 700, 1 << 20):
                    answer = await client.ask(
                        fetch_request(
                            fetch_topic(topic, {0: offset}, partition_max_bytes=size), min_bytes=0
                        ),
                        11,
                    )
                    (partition,) = answer.responses[0].partitions
                    # The end of the log comes with the answer, and new records behind the old ones.
                    data = bytes(partition.records or b"")
                    asked = {"topic": topic, "offset": offset, "size": size}
                    found.append({**asked, "error": partition.error_code, "data": data})
            for time in (-2, -3, *range(FIRST_TIMESTAMP - 50, FIRST_TIMESTAMP + 9000, 171)):
                answer = await client.ask(list_offsets_request(topic, {0: time}), 7)
                (offsets,) = answer.topics[0].partitions
                found.append({"topic": topic, "time": time, "error": offsets.error_code})
                found[-1]["found"] = (offsets.timestamp, offsets.offset)
    return found


def files(pair: Pair) -> list[dict[str, bytes | None]]:
    """
    What each broker has in the directories of the topics; of snapshots, that they are there.
    """
    return [
        {
            f"{topic} {path.name}": None if path.suffix == ".snapshot" else path.read_bytes()
            for topic in TOPICS
            for path in (side.data / f"{topic}-0").iterdir()
            if path.name not in ("partition.metadata", "leader-epoch-checkpoint")
        }
        for side in pair.sides
    ]


def test_old_segments_are_served_as_by_apache_kafka(pair: Pair, client_named: Named) -> None:
    """
    Found without their indexes after a clean stop; read by clients; continued; and recovered after
    a kill, one of them damaged.
    """
    ends = with_old_segments(pair, client_named)
    asyncio.run(pair.each(Side.start))
    kafkas, ours = asyncio.run(answers(pair, ends))
    assert kafkas == ours
    assert {0} == {answer["error"] for answer in ours}
    for side in pair.sides:
        for topic, end in ends.items():
            continue_and_read(side, topic, end, client_named)

    pair.kill()
    for side in pair.sides:
        for topic in TOPICS:
            last = max((side.data / f"{topic}-0").glob("*.log"))
            data = bytearray(last.read_bytes())
            data[len(data) * 2 // 3] ^= 1
            last.write_bytes(data)
    asyncio.run(pair.each(Side.start))
    kafkas, ours = asyncio.run(answers(pair, ends))
    asyncio.run(pair.stop())

    assert kafkas == ours
    kafkas_files, our_files = files(pair)
    assert kafkas_files == our_files
    suffixes = {Path(name).suffix for name in our_files}
    assert {".log", ".index", ".timeindex", ".snapshot"} == suffixes


def continue_and_read(side: Side, topic: str, end: int, client_named: Named) -> None:
    """
    Produce one more record, and read all of them with the clients that still know old formats.
    """
    new = [NewRecord(b"new", timestamp_ms=FIRST_TIMESTAMP, partition=0)]
    client_named("confluent-kafka").produce(side.broker.bootstrap, topic, new, "none")
    logs = sorted((side.data / f"{topic}-0").glob("*.log"))
    stored = batches(b"".join(path.read_bytes() for path in logs))
    expected = [(r.offset, r.key, r.value) for batch in stored for r in batch.records()]
    assert (end, None, b"new") == expected[-1]
    for name in ("confluent-kafka", "Java"):
        read = client_named(name).read(side.broker.bootstrap, topic, 1, len(expected))
        assert expected == [(each.offset, each.key, each.value) for each in read], name
