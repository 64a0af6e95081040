"""
Log directories that Apache Kafka has written, explained; held against what its own tools and its
own broker say about them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from barnabas.storage.explain.known import ExplainError
from barnabas.storage.state_files.file_names import offset_from_file_name
from tests.support.explaining import Explainer
from tests.support.fingerprint import fingerprint
from tests.support.kafka_directory import KafkaDirectory
from tests.support.some import some

SETS = [
    ("codecs", "data", "dump"),
    ("compaction", "data", "dump"),
    ("groups", "data", "dump"),
    ("groups-compacted", "data", "dump"),
    ("metadata", "data", "dump"),
    ("recovery-clean", "after", "dump-after"),
    ("recovery-killed", "after", "dump-after"),
    ("segments", "data", "dump"),
    ("transactions-tv0", "data", "dump"),
    ("transactions-tv1", "data", "dump"),
    ("transactions-tv2", "data", "dump"),
]

_FILE = re.compile(r"Dumping (?:\S+/)?([^/\s]+)/(\d{20})\.\w+")
_BATCH = re.compile(
    r"baseOffset: (\d+) lastOffset: (\d+) .* position: (\d+) \w+: -?\d+ size: (\d+)"
)
_ENTRY = re.compile(r"offset: (\d+) position: (\d+)")


class Batch(NamedTuple):
    segment: int
    base_offset: int
    last_offset: int
    position: int
    size: int


def partitions_in(directory: Path) -> list[str]:
    return sorted(
        path.name
        for path in directory.iterdir()
        if re.fullmatch(r"[^.]+-[0-9]+", path.name) and path.is_dir()
    )


def dumped_batches(path: Path) -> Iterator[Batch]:
    base = -1
    for line in path.read_text(errors="replace").splitlines():
        if file := _FILE.match(line):
            base = int(file[2])
        elif batch := _BATCH.match(line):
            yield Batch(base, *map(int, batch.groups()))


def dumped_entries(path: Path) -> dict[int, list[tuple[int, int]]]:
    """
    The entries of offset indexes, by the base offset of their segment.
    """
    found: dict[int, list[tuple[int, int]]] = {}
    base = -1
    for line in path.read_text().splitlines():
        if file := _FILE.match(line):
            base = int(file[2])
            found[base] = []
        elif entry := _ENTRY.match(line):
            found[base].append((int(entry[1]), int(entry[2])))
    return found


def some_of(batches: list[Batch]) -> list[Batch]:
    """
    The first and the last, and three in between.
    """
    places = {len(batches) * at // 4 for at in range(4)} | {len(batches) - 1}
    return [batches[at] for at in sorted(places)]


@pytest.mark.parametrize(("name", "data", "_"), SETS)
def test_every_partition_of_kafka_is_explained_and_unchanged(
    name: str, data: str, _: str, golden: Path
) -> None:
    directory = golden / name / data
    before = fingerprint(directory)

    for partition in some(partitions_in(directory)):
        explain = Explainer(directory)
        facts = explain.facts(partition, "--all")
        logs = sorted((directory / partition).glob("*.log"))
        assert [(offset_from_file_name(path.name), path.stat().st_size) for path in logs] == [
            (segment["base_offset"], segment["size"]) for segment in facts["segments"]
        ]
        text = explain.text(partition, "--all")
        for title in ("End(?:s|ed)", "Kept", "Deleted"):
            assert len(logs) == len(re.findall(rf"^  {title} +\S", text, re.MULTILINE))
        for segment in facts["segments"]:
            explain.text(partition, "--segment", str(segment["base_offset"]))

    assert before == fingerprint(directory)


@pytest.mark.parametrize(("name", "data", "dump"), SETS)
def test_offset_lookup_agrees_with_kafkas_dump_tool(
    name: str, data: str, dump: str, golden: Path
) -> None:
    looked_at = 0
    for partition in partitions_in(golden / name / data):
        log_dump = golden / name / dump / f"{partition}.log.txt"
        if not log_dump.exists() or not (batches := list(dumped_batches(log_dump))):
            continue
        entries = dumped_entries(golden / name / dump / f"{partition}.index.txt")
        batches = [batch for batch in batches if batch.segment in entries]
        explain = Explainer(golden / name / data)
        for batch in some_of(batches):
            for offset in {batch.base_offset, batch.last_offset}:
                facts = explain.facts(partition, "--offset", str(offset))
                found, index = facts["offset"], facts["offset"]["index"]
                assert batch == Batch(
                    found["segment"],
                    found["batch_base_offset"],
                    facts["record"]["batch"]["last_offset"],
                    found["position"],
                    found["size"],
                )
                of_segment = entries[batch.segment]
                not_above = [entry for entry in of_segment if entry[0] <= offset]
                assert len(of_segment) == index["entries"]
                assert (index["slot"] is None) == (not not_above)
                expected = not_above[-1] if not_above else (batch.segment, 0)
                assert expected == (index["offset"], index["position"])
                scanned = [
                    other
                    for other in batches
                    if other.segment == batch.segment
                    and expected[1] <= other.position <= batch.position
                ]
                assert len(scanned) == found["scanned_batches"]
                looked_at += 1

    assert looked_at > 0


@pytest.mark.parametrize("name", ["segments", "compaction", "codecs"])
def test_time_lookup_agrees_with_kafkas_list_offsets(name: str, golden: Path) -> None:
    answers = json.loads((golden / name / "offsets.json").read_text())
    explain = Explainer(golden / name / "data")
    looked_at = 0
    for partition, by_time in answers.items():
        for time, answer in some(by_time.items()):
            if not time.isdecimal():
                continue
            looked_at += 1
            found = found_for(explain, partition, time)
            assert (answer["offset"], answer["timestamp"]) == found

    assert looked_at > 0


def found_for(explain: Explainer, partition: str, time: str) -> tuple[int, int]:
    """
    As ListOffsets has it: -1 for what is not found.
    """
    try:
        found = explain.facts(partition, "--timestamp", time)["time"]["found"]
    except ExplainError:
        found = None
    # A segment without timestamps is searched by the time of its file, in vain.
    return (-1, -1) if found is None else (found["offset"], found["timestamp"])


@pytest.mark.parametrize(
    ("partition", "cause", "reasons"),
    [
        ("append-time-0", "rolled", {"size"}),
        ("canary-0", "rolled", {"size"}),
        ("canary-index300-0", "rolled", {"time_index_full"}),
        ("canary-index300-default-0", "rolled", {"size"}),
        ("constant-time-0", "rolled", {"offset_index_full"}),
        ("future-0", "rolled", {"time", "size"}),
        ("index-100-0", "rolled", {"time_index_full"}),
        ("index-full-0-0", "rolled", {"time_index_full"}),
        ("index-full-150-0", "rolled", {"time_index_full"}),
        ("interval-4096-0", "rolled", {"size"}),
        ("multi-record-0", "rolled", {"size"}),
        ("no-timestamp-0", "clock", {None}),
        ("out-of-order-0", "rolled", {"size"}),
        ("preallocated-0", "rolled", {"size"}),
        ("restarts-0", "rolled", {"size"}),
        ("roll-jitter-0", "jitter", {"time"}),
        ("roll-ms-0", "rolled", {"time"}),
        ("size-1000-0", "rolled", {"size"}),
        ("size-exact-0", "rolled", {"size"}),
    ],
)
def test_segment_ends_are_explained_by_the_rule_their_topic_was_made_for(
    partition: str, cause: str, reasons: set[str | None], golden: Path
) -> None:
    segments = Explainer(golden / "segments" / "data").facts(partition)["segments"]

    endings = [segment["ending"] for segment in segments[:-1]]
    assert {cause} == {ending["cause"] for ending in endings}
    assert reasons == {ending["reason"] for ending in endings}
    assert "active" == segments[-1]["ending"]["cause"]


def test_explain_reads_settings_from_kafkas_metadata_log(golden: Path) -> None:
    settings = Explainer(golden / "segments" / "data").facts("canary-index300-0")["settings"]

    assert {"value": "300", "source": "set for the topic"} == settings["segment.index.bytes"]
    assert {"value": "604800000", "source": "default"} == settings["segment.ms"]


def test_directory_of_a_crashed_kafka_is_explained(golden: Path, tmp_path: Path) -> None:
    """
    The broker was killed: indexes are untrimmed, deleted files remain, and there is no clean
    shutdown file.
    """
    explain = Explainer(KafkaDirectory(golden / "retention-killed", "data", tmp_path).path)
    before = fingerprint(tmp_path)

    by_ms, future = explain.facts("by-ms-0"), explain.facts("future-blocks-0")
    deleted, empty = explain.facts("delete-records-0"), explain.facts("by-ms-all-0")

    assert "killed" == by_ms["condition"]
    assert 11 == len(by_ms["waiting_files"])
    assert [14, 20, 26] == [segment["base_offset"] for segment in by_ms["segments"]]
    assert {"retention_ms"} == {segment["departure"]["goes_by"] for segment in by_ms["segments"]}
    assert "in_the_future" == future["segments"][0]["departure"]["stances"][2]["reason"]
    assert {8} == {segment["departure"]["due_with"] for segment in future["segments"]}
    assert (14, 12) == (deleted["log_start_offset"], deleted["segments"][0]["base_offset"])
    assert 30 == empty["log_end_offset"]
    assert empty["segments"][0]["departure"]["is_empty"]
    assert before == fingerprint(tmp_path)


@pytest.mark.parametrize("name", ["recovery-killed", "recovery-clean"])
def test_damaged_logs_of_kafka_are_explained(name: str, golden: Path, tmp_path: Path) -> None:
    directory = KafkaDirectory(golden / name, "before", tmp_path).path
    explain = Explainer(directory)
    before = fingerprint(directory)

    for partition in some(partitions_in(directory)):
        assert explain.text(partition, "--all").startswith(partition)

    assert before == fingerprint(directory)
