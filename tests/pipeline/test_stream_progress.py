from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from barnabas.pipeline.errors import DataLoss, InvalidOption, UnknownTopic
from barnabas.pipeline.option_parser import parse_stream_options
from barnabas.pipeline.options import ReadOptions
from barnabas.pipeline.reading.stream_plan import (
    Progress,
    admit,
    from_json,
    initial,
    latest,
    to_json,
    work_between,
)
from barnabas.pipeline.rows import read
from barnabas.storage.directories.directory import HIGH_WATERMARK_CHECKPOINT
from barnabas.storage.topic_partition import TopicPartition
from tests.support.log_directory import START_OFFSETS, WrittenDirectory, append, some_records
from tests.support.some import some

BOTH = {TopicPartition("events", 0): 300, TopicPartition("events", 1): 100}
NOTHING = dict.fromkeys(BOTH, 0)


@pytest.fixture
def written(tmp_path: Path) -> WrittenDirectory:
    directory = WrittenDirectory(tmp_path)
    for (topic, partition), count in BOTH.items():
        log = directory.log(topic, partition, segment_bytes=5000, index_interval_bytes=100)
        for start in range(0, count, 5):
            append(log, some_records(5, start=start))
    directory.checkpoint()
    return directory


def options(directory: WrittenDirectory, **given: str) -> ReadOptions:
    return parse_stream_options({"path": str(directory.path), **given})


def step(directory: WrittenDirectory, start: Any, **given: Any) -> Any:
    names = ("target", "max_offsets", "max_bytes")
    more = {name: given.pop(name, None) for name in names}
    more["target"] = None if more["target"] is None else Progress(more["target"])
    return admit(options(directory, **given), Progress(start), **more).offsets


def offsets(directory: WrittenDirectory, start: Any, end: Any, **given: str) -> list[int]:
    parsed = options(directory, **given)
    return [
        offset
        for work in work_between(parsed, Progress(start), Progress(end))
        for batch in read(work, ["offset"], parsed)
        for offset in batch.column(0).to_pylist()
    ]


def test_progress_offsets_have_the_format_of_the_connector() -> None:
    offsets = {
        TopicPartition("b", 0): 1,
        TopicPartition("a", 10): 2,
        TopicPartition("a", 9): 3,
    }
    older = '{"a": {"9": 3, "10": 2}, "b": {"0": 1}}'
    progress = Progress(offsets, {"b": UUID(int=7)})

    noted = json.dumps(to_json(progress))

    assert older.replace('"0"', '"id": "AAAAAAAAAAAAAAAAAAAABw", "0"') == noted
    assert progress == from_json(json.loads(noted))
    assert older == json.dumps(to_json(Progress(offsets)))
    assert Progress(offsets) == from_json(json.loads(older))


def test_stream_begins_at_the_end_by_default(written: WrittenDirectory) -> None:
    some = '{"events": {"0": 42}}'

    assert BOTH == initial(options(written)).offsets == latest(options(written)).offsets
    assert NOTHING == initial(options(written, startingOffsets="earliest")).offsets
    at_42 = initial(options(written, startingOffsets=some)).offsets
    assert {**BOTH, TopicPartition("events", 0): 42} == at_42


def test_stream_step_without_limits_goes_to_the_end(written: WrittenDirectory) -> None:
    first, second = BOTH

    assert BOTH == step(written, NOTHING)
    assert {first: 70, second: 30} == step(written, {**NOTHING, second: 30}, target={first: 70})


def test_offset_limit_is_shared_among_partitions_with_backlog(written: WrittenDirectory) -> None:
    first, second = BOTH

    progress = step(written, NOTHING, max_offsets=40)
    assert {first: 30, second: 10} == progress
    for _ in range(20):
        progress = step(written, progress, max_offsets=40)
    assert BOTH == progress


def test_byte_limit_is_shared_among_partitions_with_backlog(written: WrittenDirectory) -> None:
    progress: Any = NOTHING
    seen: list[int] = []
    steps = 0
    while progress != BOTH:
        end = step(written, progress, max_bytes=2000)
        assert all(offset % 5 == 0 for offset in some(end.values()))
        found = offsets(written, progress, end)
        assert 0 < len(found) <= 80
        seen += found
        progress = end
        steps += 1

    assert sorted([*range(300), *range(100)]) == sorted(seen)
    assert 8 <= steps <= 20


def test_stream_steps_have_the_requested_number_of_tasks(written: WrittenDirectory) -> None:
    start = {**BOTH, TopicPartition("events", 0): 200}

    between = Progress(start), Progress(BOTH)
    assert 1 == len(work_between(options(written), *between))
    several = options(written, minPartitions="4")
    assert 4 <= len(work_between(several, *between)) <= 8
    assert list(range(200, 300)) == offsets(written, start, BOTH, minPartitions="4")


def test_one_batch_is_read_however_small_the_limit(written: WrittenDirectory) -> None:
    """
    The stream would otherwise stop; this applies to segments without an index, too.
    """
    for index in written.path.glob("events-1/*.index"):
        index.unlink()

    end = step(written, NOTHING, max_bytes=1)

    assert all(some(end.values()))


def test_new_partition_is_read_from_its_beginning(written: WrittenDirectory) -> None:
    first, _ = BOTH
    start = {first: 300}

    end = step(written, start)
    assert BOTH == end
    assert list(range(100)) == offsets(written, start, end)
    (written.path / START_OFFSETS).write_text("0\n1\nevents 1 20\n")
    with pytest.raises(DataLoss, match="Offsets 0 to 19 of events-1 are gone"):
        offsets(written, start, end)
    assert list(range(20, 100)) == offsets(written, start, end, failOnDataLoss="false")


def test_deleted_partition_is_a_data_loss(written: WrittenDirectory) -> None:
    first, _ = BOTH
    shutil.rmtree(written.path / "events-1")

    with pytest.raises(DataLoss, match="events-1 is gone"):
        step(written, NOTHING)
    with pytest.raises(DataLoss, match="events-1 is gone"):
        offsets(written, NOTHING, BOTH)
    assert {first: 300} == step(written, NOTHING, failOnDataLoss="false")


def test_log_that_became_shorter_is_a_data_loss(written: WrittenDirectory) -> None:
    beyond = {**BOTH, TopicPartition("events", 1): 120}

    with pytest.raises(DataLoss, match="events-1 was read up to offset 120, and ends at 100 now"):
        step(written, beyond)
    with pytest.raises(DataLoss, match="events-1 is to be read up to offset 120"):
        offsets(written, BOTH, beyond)


def test_older_high_watermark_is_no_data_loss(written: WrittenDirectory) -> None:
    """
    The directory of another replica, or of a broker that was killed, may know an older one.
    """
    (written.path / HIGH_WATERMARK_CHECKPOINT).write_text("0\n2\nevents 0 300\nevents 1 40\n")
    start = {**BOTH, TopicPartition("events", 1): 50}

    assert start == step(written, start)
    assert [] == offsets(written, start, start)


@pytest.mark.parametrize(
    "given", [{"endingOffsets": "latest"}, {"endingTimestamp": "5"}, {"level": "segments"}]
)
def test_options_unsuitable_for_streams_are_refused(
    written: WrittenDirectory, given: dict[str, str]
) -> None:
    with pytest.raises(InvalidOption, match="batch queries"):
        options(written, **given)


@pytest.mark.parametrize(
    "named", [{"subscribe": "events,users"}, {"assign": '{"events": [0, 1], "users": [0]}'}]
)
def test_stream_continues_without_a_named_topic_that_is_gone(
    written: WrittenDirectory, named: dict[str, str]
) -> None:
    append(written.log("users"), some_records(5))
    written.checkpoint()
    left = options(written, **named, failOnDataLoss="false")
    start = initial(options(written, **named, startingOffsets="earliest"))
    shutil.rmtree(written.path / "users-0")

    end = admit(left, start, target=latest(left), max_offsets=None, max_bytes=None)

    assert BOTH == end.offsets
    assert sum(BOTH.values()) == len(
        offsets(written, start.offsets, end.offsets, failOnDataLoss="false", **named)
    )
    with pytest.raises(UnknownTopic, match="has no users"):
        admit(options(written, **named), start, target=None, max_offsets=None, max_bytes=None)
