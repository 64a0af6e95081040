"""
The API explains logs as ``barnabas explain`` does.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from barnabas.protocol.records.batch import build_batch
from barnabas.protocol.records.record import SimpleRecord
from barnabas.server.cli import main
from barnabas.storage.fs.disk import DiskFile, DiskFiles
from barnabas.testing.manual_clock import ManualClock
from tests.support.api_client import HTTP, ask
from tests.support.explaining import Explainer
from tests.support.server import START_MS, TestBroker, produce_request, running

HOUR_MS = 3_600_000


def explainer_of(broker: TestBroker) -> Explainer:
    given: dict[str, Any] = {
        name.replace(".", "_"): text for name, text in broker.config.given.items()
    }
    return Explainer(*broker.config.log_directories, now_ms=START_MS, **given)


async def fill(broker: TestBroker, topic: str, chance: Random, batches: int) -> None:
    async with await broker.client() as client:
        for number in range(batches):
            at = START_MS - (batches - number) * HOUR_MS // 4 + chance.randrange(HOUR_MS)
            records = [
                SimpleRecord(at, b"%d" % chance.randrange(9), b"x" * chance.randrange(1, 80))
                for _ in range(chance.randrange(1, 5))
            ]
            answer = await client.ask(produce_request(topic, bytes(build_batch(records))), 9)
            assert 0 == answer.responses[0].partition_responses[0].error_code


def config_of(chance: Random) -> dict[str, str]:
    found = {
        "internal_segment_bytes": str(chance.randrange(600, 1500)),
        "cleanup_policy": chance.choice(("delete", "compact", "compact,delete")),
        "message_timestamp_before_max_ms": str(2**62),
    }
    if chance.random() < 0.5:
        found["retention_ms"] = str(chance.randrange(HOUR_MS, 40 * HOUR_MS))
    return found


def suppositions(chance: Random) -> list[str]:
    known = {
        "retention.ms": chance.randrange(HOUR_MS, 20 * HOUR_MS),
        "retention.bytes": chance.randrange(100, 4000),
        "segment.ms": chance.randrange(HOUR_MS, 9 * HOUR_MS),
        "internal.segment.bytes": chance.randrange(100, 3000),
        "log.retention.check.interval.ms": chance.randrange(1000, 900_000),
        "min.cleanable.dirty.ratio": round(chance.random(), 2),
        "cleanup.policy": "delete",
        "segment.index.bytes": chance.choice((96, 960)),
    }
    chosen = chance.sample(sorted(known), chance.randrange(0, 4))
    return [f"{name}={known[name]}" for name in chosen]


@pytest.mark.parametrize("seed", range(6))
async def test_api_explanation_with_assumptions_agrees_with_the_command(
    tmp_path: Path, seed: int
) -> None:
    chance = Random(seed)
    clock = ManualClock(START_MS)
    options = HTTP | {"log_dirs": str(tmp_path / "data")}
    async with running(DiskFiles(), clock, **options) as broker:
        await broker.create("t", 1, **config_of(chance))
        await fill(broker, "t", chance, chance.randrange(1, 40))
        for _ in range(6):
            if chance.random() < 0.4:
                await fill(broker, "t", chance, 1)  # what was opened before is too old
            supposed = suppositions(chance)
            at = START_MS + chance.randrange(-HOUR_MS, 100 * HOUR_MS)
            query = {"set": supposed, "at": at}
            explainer = explainer_of(broker)
            arguments = [part for each in supposed for part in ("--set", each)]
            expected = explainer.facts("t-0", "--at", str(at), *arguments)

            said = await ask(broker, "/topics/t/partitions/0/explain", limit=5000, **query)
            timeline = await ask(broker, "/topics/t/partitions/0", **query)

            assert expected == said["explained"]
            columns = timeline.pop("segments")
            for name in ("base_offset", "end_offset", "size", "first_batch_timestamp"):
                assert [each[name] for each in expected["segments"]] == columns[name]
            departures = [each["departure"] for each in expected["segments"]]
            assert [each["goes_by"] for each in departures] == columns["goes_by"]
            assert [each["due_ms"] for each in departures] == columns["due_ms"]
            assert [each["unreadable"]["earliest_ms"] for each in departures] == columns[
                "unreadable_earliest_ms"
            ]
            assert [each["ending"]["cause"] for each in expected["segments"]] == columns["cause"]
            for name, value in timeline.items():
                if name != "groups":
                    assert expected.get(name) == value, name
            json.dumps(said)


async def test_explain_command_agrees_with_the_api(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chance = Random(7)
    options = HTTP | {"log_dirs": str(tmp_path / "data")}
    async with running(DiskFiles(), ManualClock(START_MS), **options) as broker:
        await broker.create("t", 1, **config_of(chance))
        await fill(broker, "t", chance, 20)
        settings = tmp_path / "server.properties"
        settings.write_text("".join(f"{n}={v}\n" for n, v in broker.config.given.items()))
        command = ["explain", "t-0", "--config", str(settings), "--format", "json"]
        supposed = ["--at", str(START_MS), "--set", "retention.ms=3600000"]
        assert 0 == main([*command, *supposed])
        expected = json.loads(capsys.readouterr().out)

        said = await ask(
            broker,
            "/topics/t/partitions/0/explain",
            limit=5000,
            at=START_MS,
            set="retention.ms=3600000",
        )

    assert expected == said["explained"]


async def test_segments_of_an_explanation_are_paged(tmp_path: Path) -> None:
    options = HTTP | {"log_dirs": str(tmp_path / "data")}
    async with running(DiskFiles(), ManualClock(START_MS), **options) as broker:
        await broker.create("t", 1, internal_segment_bytes="600")
        await fill(broker, "t", Random(1), 20)
        everything = await ask(broker, "/topics/t/partitions/0/explain")
        page = await ask(broker, "/topics/t/partitions/0/explain", start=1, limit=2)

    assert everything["explained"]["segments"][1:3] == page["explained"]["segments"]
    assert (3, everything["total"]) == (page["next"], page["total"])
    assert len(everything["explained"]["segments"]) == everything["total"] > 3


async def test_log_that_loses_segments_meanwhile_is_explained(tmp_path: Path) -> None:
    options = HTTP | {"log_dirs": str(tmp_path / "data")}
    files = Vanishing()
    async with running(files, ManualClock(START_MS), **options) as broker:
        await broker.create("t", 1, internal_segment_bytes="600")
        await fill(broker, "t", Random(1), 20)
        before = await ask(broker, "/topics/t/partitions/0")
        log = broker.partitions.expect("t", 0).log

        def vanish() -> None:
            log.delete_records(before["segments"]["base_offset"][2])
            log.delete_old_segments()
            for path in sorted((tmp_path / "data" / "t-0").glob("*.deleted")):
                path.unlink()

        files.before_the_next_read = vanish
        after = await ask(broker, "/topics/t/partitions/0", set="segment.index.bytes=960")

    assert before["segments"]["base_offset"][2:] == after["segments"]["base_offset"]


class Vanishing(DiskFiles):
    """
    A disk that calls a function when the start of a log is opened for reading.
    """

    before_the_next_read: Callable[[], None] | None = None

    def open(self, path: Path, *, create: bool = True, read_only: bool = False) -> DiskFile:
        work = self.before_the_next_read
        if work is not None and read_only and path.name == f"{0:020d}.log":
            self.before_the_next_read = None
            work()
        return super().open(path, create=create, read_only=read_only)
