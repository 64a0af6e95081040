from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from barnabas.server.cli import main
from barnabas.server.clock import EventLoopClock
from barnabas.server.dynamic_config.known_cluster import Suppositions
from barnabas.storage.config.option_values import ConfigError
from barnabas.storage.fs.disk import DiskFiles
from tests.support.explaining import Explainer
from tests.support.server import TestBroker, batch, produce_request, running

START_MS = 1_700_000_000_000


@pytest_asyncio.fixture
async def broker(tmp_path: Path) -> AsyncIterator[TestBroker]:
    async with running(
        DiskFiles(),
        EventLoopClock(),
        log_dirs=str(tmp_path / "data"),
        log_retention_ms="7200000",
        message_max_bytes="2000000",
    ) as started:
        await started.create(
            "orders",
            retention_ms="600000",
            internal_segment_bytes="500",
            message_timestamp_before_max_ms=str(2**62),
        )
        await started.create("plain", partitions=2)
        async with await started.client() as client:
            for number in range(10):
                records = batch(bytes(80), timestamp=START_MS + number * 1000)
                await client.ask(produce_request("orders", records), 9)
        yield started


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


async def test_explain_reads_the_logs_of_a_running_broker(broker: TestBroker, data: Path) -> None:
    explain = Explainer(data)

    facts = explain.facts("orders-0", "--at", str(START_MS))

    assert "in_use" == facts["condition"]
    assert 10 == facts["log_end_offset"]
    assert [0, 3, 6, 9] == [segment["base_offset"] for segment in facts["segments"]]
    assert {"size"} == {segment["ending"]["reason"] for segment in facts["segments"][:-1]}
    active = facts["segments"][-1]
    assert START_MS + 9000 == active["departure"]["largest_timestamp"]
    async with await broker.client() as client:
        await client.ask(produce_request("orders", batch(b"more")), 9)
    assert 11 == explain.facts("orders")["log_end_offset"]


async def test_explain_reads_the_logs_of_a_stopped_broker(broker: TestBroker, data: Path) -> None:
    await broker.stop()

    facts = Explainer(data).facts("orders-0")

    assert "stopped" == facts["condition"]
    assert 10 == facts["log_end_offset"]


async def test_explained_settings_name_their_source(broker: TestBroker, data: Path) -> None:
    explain = Explainer(data, log_retention_ms="7200000")

    orders, plain = explain.facts("orders")["settings"], explain.facts("plain-1")["settings"]

    assert {"value": "600000", "source": "set for the topic"} == orders["retention.ms"]
    assert {
        "value": "7200000",
        "source": "from the configuration of the broker",
    } == plain["retention.ms"]
    assert {"value": "-1", "source": "default"} == plain["retention.bytes"]


async def test_assumed_settings_take_precedence(broker: TestBroker, data: Path) -> None:
    explain = Explainer(data)
    supposed = ["--set", "retention.ms=1000", "--set", "log.retention.check.interval.ms=2000"]

    facts = explain.facts("orders", "--at", str(START_MS), *supposed)

    departure = facts["segments"][0]["departure"]
    assert {"value": "1000", "source": "supposed"} == facts["settings"]["retention.ms"]
    assert 2000 == facts["broker"]["retention_check_interval_ms"]
    assert [START_MS + 3001, START_MS + 5001] == list(departure["unreadable"].values())


async def test_assumed_broker_setting_does_not_override_the_topic(
    broker: TestBroker, data: Path
) -> None:
    explain = Explainer(data)
    supposed = ["--set", "log.retention.hours=1"]

    plain, orders = explain.facts("plain-0", *supposed), explain.facts("orders", *supposed)

    assert {"value": "3600000", "source": "supposed"} == plain["settings"]["retention.ms"]
    assert [] == plain["supposed_in_vain"]
    assert "600000" == orders["settings"]["retention.ms"]["value"]
    assert [
        "--set log.retention.hours changes nothing: retention.ms is 600000, set for the topic."
    ] == orders["supposed_in_vain"]


async def test_explain_of_a_topic_covers_each_partition(broker: TestBroker, data: Path) -> None:
    explain = Explainer(data)

    text = explain.text("plain")

    assert text.startswith("plain-0\n  No records; the next one gets offset 0.")
    assert "\nplain-1\n" in text
    assert 1 == text.count("Settings at ")
    assert [0, 1] == [json.loads(line)["partition"] for line in explain.all_facts("plain")]


async def test_explain_command_fails_with_one_sentence(
    broker: TestBroker, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*arguments: str) -> tuple[int, str, str]:
        status = main(["explain", "--data-dir", str(data), *arguments])
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    status, out, err = run("orders-0", "--offset", "4")
    assert (0, "") == (status, err)
    assert "Offset 4\n  Found    Segment 3 has it" in out
    for arguments, expected, sentence in (
        (["order"], 1, "did you mean orders?"),
        (["orders-7"], 1, "Topic orders has no partition 7 here; it has 0"),
        (["orders", "--offset", "10"], 1, "out of range: orders-0 has offsets 0 to 9"),
        (["plain", "--offset", "0"], 1, "plain has several partitions; name one of plain-0,"),
        (["orders", "--timestamp", "soon"], 2, "'soon' is not a time"),
        (["orders", "--set", "retension.ms=1"], 2, "did you mean retention.ms?"),
        (["orders", "--set", "retention.ms"], 2, "--set name=value"),
        (["orders", "--set", "retention.ms=-5"], 2, "at least -1"),
        (["orders", "--set", "log.retention.check.interval.ms=0"], 2, "at least 1"),
    ):
        status, out, err = run(*arguments)
        assert (expected, "") == (status, out)
        assert err.startswith("barnabas: ")
        assert sentence in err
        assert 1 == err.count("\n")


def test_missing_directory_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["explain", "--data-dir", str(tmp_path / "nothing"), "orders"])

    assert 1 == status
    assert "There is no log directory" in capsys.readouterr().err


def test_directory_without_metadata_has_the_settings_of_the_broker(
    tmp_path: Path, golden: Path
) -> None:
    """
    For example a copied partition.
    """
    copied = tmp_path / "canary-0"
    copied.mkdir()
    for path in (golden / "segments" / "data" / "canary-0").iterdir():
        (copied / path.name).write_bytes(path.read_bytes())

    facts = Explainer(tmp_path).facts("canary", "--set", "internal.segment.bytes=16384")

    assert facts["settings_note"].startswith("There is no metadata log here.")
    assert {"value": "604800000", "source": "default"} == facts["settings"]["retention.ms"]
    assert ("size", True) == (
        facts["segments"][0]["ending"]["reason"],
        facts["segments"][0]["ending"]["is_supposed"],
    )


async def test_unreadable_metadata_log_is_reported(broker: TestBroker, data: Path) -> None:
    """
    The beginning is missing and there is no snapshot. The rest is explained.
    """
    await broker.stop()
    for path in (data / "__cluster_metadata-0").glob("00000000000000000000.*"):
        path.rename(path.with_name(f"{7:020d}{path.suffix}"))

    facts, text = Explainer(data).facts("orders"), Explainer(data).text("orders")

    assert 10 == facts["log_end_offset"]
    assert "cannot be read" in facts["settings_note"]
    assert " ".join(facts["settings_note"].split()) in " ".join(text.split())


async def test_topic_unknown_to_the_metadata_is_reported(broker: TestBroker, data: Path) -> None:
    await broker.stop()
    (data / "orders-0").rename(data / "stray-0")

    assert "does not have the topic" in Explainer(data).facts("stray")["settings_note"]
    assert "" == Explainer(data).facts("plain-0")["settings_note"]
    assert "" == Explainer(data).facts("__cluster_metadata")["settings_note"]


@pytest.mark.parametrize("assignment", ["", "=", "x=1", "retention.ms=soon"])
def test_invalid_assumed_setting_is_refused(assignment: str) -> None:
    with pytest.raises(ConfigError):
        Suppositions.parse([assignment])
