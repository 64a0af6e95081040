"""
Metadata logs that Apache Kafka wrote, against what its own tool says about them.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from barnabas.coordination.cluster.image import MetadataImage, Versioned
from barnabas.coordination.cluster.record_frames import decode_record, encode_record
from barnabas.coordination.cluster.replay import Replay
from barnabas.protocol.codec.schema import Message
from barnabas.protocol.internal_topics import metadata_records as records
from barnabas.protocol.records.batch import RecordBatch, batches
from barnabas.protocol.structs import replace
from barnabas.server.cluster.formatting import default_bootstrap, read_bootstrap
from barnabas.server.cluster.snapshots import SnapshotId, find_snapshots, read_snapshot
from barnabas.storage.fs.disk import DiskFiles
from tests.support.some import some

DIRECTORIES = (
    "codecs", "compaction", "groups", "groups-compacted", "metadata", "segments",
    "transactions-tv0", "transactions-tv1", "transactions-tv2",
)  # fmt: skip
_PAYLOAD = re.compile(r"\| offset: (\d+) .* payload: (\{.*\})$")


def log_dir(golden: Path, name: str) -> Path:
    return golden / name / "data" / "__cluster_metadata-0"


def log_batches(directory: Path) -> Iterator[RecordBatch]:
    for segment in sorted(directory.glob("*.log")):
        yield from batches(segment.read_bytes())


def replayed(directory: Path, end_offset: int | None = None) -> Replay:
    replay = Replay()
    for batch in log_batches(directory):
        if end_offset is None or batch.base_offset < end_offset:
            replay.batch(batch)
    return replay


def dumped(path: Path) -> dict[int, dict[str, Any]]:
    matches = map(_PAYLOAD.match, path.read_text().splitlines())
    return {int(match[1]): json.loads(match[2]) for match in matches if match is not None}


def as_json(value: Any) -> Any:
    """
    A message as Kafka's converters print it.
    """
    if isinstance(value, UUID):
        return base64.urlsafe_b64encode(value.bytes).decode().rstrip("=")
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, list):
        return [as_json(element) for element in value]
    if hasattr(value, "__slots__"):
        return {_camel_case(name): as_json(getattr(value, name)) for name in value.__slots__}
    return value


def _camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def type_name(record: Message) -> str:
    name = re.sub(r"(?<!^)(?=[A-Z])", "_", type(record).__name__)
    return name.upper()


def content(image: MetadataImage) -> list[str]:
    return sorted(repr(_with_sorted_features(record)) for record, _ in image.as_records())


def _with_sorted_features(record: Message) -> Message:
    """
    The features of a node come from a hash map, and so in any order.
    """
    if isinstance(record, records.RegisterBrokerRecord | records.RegisterControllerRecord):
        features: list[Any] = sorted(record.features, key=lambda feature: feature.name)
        return replace(record, features=features)
    return record


def test_metadata_records_print_as_in_kafkas_dump_tool(golden: Path) -> None:
    # All record types that Apache Kafka 4.3.1 writes, with their versions.
    expected = dumped(golden / "metadata" / "dump" / "__cluster_metadata-0.log.decoded.txt")
    found: dict[int, Versioned] = {}
    for batch in log_batches(log_dir(golden, "metadata")):
        if not batch.is_control:
            found |= {r.offset: decode_record(r.value or b"") for r in batch.records()}

    assert expected.keys() == found.keys()
    for offset, (record, version) in some(found.items()):
        printed = expected[offset]
        assert (printed["type"], printed["version"]) == (type_name(record), version)
        data = as_json(record)
        # Tagged fields that have their default are not printed.
        assert printed["data"] == {name: data[name] for name in printed["data"]}
    assert len({type(record) for record, _ in found.values()}) > 15


@pytest.mark.parametrize("name", DIRECTORIES)
def test_metadata_records_survive_a_round_trip_byte_for_byte(golden: Path, name: str) -> None:
    for batch in log_batches(log_dir(golden, name)):
        for record in () if batch.is_control else batch.records():
            assert record.value == encode_record(*decode_record(record.value or b""))


@pytest.mark.parametrize(("end_offset", "epoch"), [(47, 1), (81, 1), (159, 2)])
def test_kafkas_snapshots_equal_the_replay_of_its_log(
    golden: Path, end_offset: int, epoch: int
) -> None:
    directory = log_dir(golden, "metadata")
    path = SnapshotId(end_offset, epoch).path(directory)

    snapshot = read_snapshot(path, DiskFiles())
    log = replayed(directory, end_offset)

    assert content(snapshot.image) == content(log.image)
    assert snapshot.last_timestamp == log.last_timestamp


def test_snapshot_records_have_kafkas_versions_and_order(golden: Path) -> None:
    directory = log_dir(golden, "metadata")
    latest = find_snapshots(directory, DiskFiles()).complete[-1]
    theirs = [
        decode_record(record.value or b"")
        for batch in batches(latest.path(directory).read_bytes())
        if not batch.is_control
        for record in batch.records()
    ]
    ours = list(read_snapshot(latest.path(directory), DiskFiles()).image.as_records())

    def kinds(made: list[Versioned]) -> list[tuple[str, int]]:
        return list(dict.fromkeys((type_name(record), version) for record, version in made))

    assert kinds(theirs) == kinds(ours)
    assert sorted(encode_record(*one) for one in theirs) == sorted(
        encode_record(*one) for one in ours
    )


@pytest.mark.parametrize("name", DIRECTORIES)
def test_partitions_of_the_image_match_the_log_directories(golden: Path, name: str) -> None:
    image = replayed(log_dir(golden, name)).image

    expected = {
        f"{topic.name}-{index}": base64.urlsafe_b64encode(topic.id.bytes).decode()[:22]
        for topic in image.topics_by_name.values()
        for index in topic.partitions
    }
    found = {
        path.parent.name: path.read_text().splitlines()[1].removeprefix("topic_id: ")
        for path in (golden / name / "data").glob("*/partition.metadata")
        if path.parent.name != "__cluster_metadata-0"
    }
    assert expected == found


@pytest.mark.parametrize("name", DIRECTORIES)
def test_broker_epoch_is_that_of_the_last_registration(golden: Path, name: str) -> None:
    image = replayed(log_dir(golden, name)).image
    marker = json.loads((golden / name / "data" / ".kafka_cleanshutdown").read_text())

    assert marker["brokerEpoch"] == image.brokers[1].broker_epoch
    assert image.brokers[1].fenced


def test_leader_epoch_rises_by_two_per_restart_and_one_per_stop(golden: Path) -> None:
    image = replayed(log_dir(golden, "segments")).image

    for name in ("restarts", "canary", "empty"):
        partition = image.topics_by_name[name].partitions[0]
        assert (5, -1) == (partition.leader_epoch, partition.leader)


def test_bootstrap_checkpoint_equals_that_of_kafka_storage_format(golden: Path) -> None:
    assert default_bootstrap() == read_bootstrap(golden / "metadata" / "data", DiskFiles())


def test_next_producer_id_lies_behind_kafkas_allocated_blocks(golden: Path) -> None:
    assert 1000 == replayed(log_dir(golden, "transactions-tv2")).image.next_producer_id
    assert -1 == replayed(log_dir(golden, "segments")).image.next_producer_id
