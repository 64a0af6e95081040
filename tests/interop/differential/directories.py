"""
Comparing what two brokers that are down have left on disk.

Log, index, time index and transaction index files are compared byte for byte, snapshots and
checkpoints by what they say, and so are the coordinators' records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from struct import Struct
from typing import Any, Final

from tests.interop.differential.answers import LONGEST_RUN_MS, Difference, Reader, differences
from tests.interop.differential.batches import comparable_batches
from tests.interop.differential.coordinator_logs import coordinator_records
from tests.interop.differential.scripts import Workload
from tests.interop.differential.sides import Pair

SNAPSHOT_ENTRY: Final = Struct(">qhiqiqiq")
TIME_ENTRY: Final = Struct(">qi")
SNAPSHOT_FIELDS: Final = (
    "producer_id",
    "producer_epoch",
    "last_sequence",
    "last_offset",
    "offset_delta",
    "timestamp",
    "coordinator_epoch",
    "current_txn_first_offset",
)
CHECKPOINTS: Final = (
    "recovery-point-offset-checkpoint",
    "log-start-offset-checkpoint",
    "replication-offset-checkpoint",
    "cleaner-offset-checkpoint",
)

IsNow = Callable[[int], bool]


def compare_directories(pair: Pair, workload: Workload, started_ms: int) -> Iterator[Difference]:
    """
    Where the two log directories differ about the topic of a workload.
    """

    def is_now(time: int) -> bool:
        return started_ms <= time < started_ms + LONGEST_RUN_MS

    kafka, barnabas = (
        contents(side.data, workload.topic, is_now, loosely=workload.loosely)
        | coordinator_records(
            side.data,
            workload.topic,
            Reader(side, started_ms).message,
            are_members_named=workload.kind != "migrations",
        )
        for side in pair.sides
    )
    yield from differences(kafka, barnabas)


def contents(data: Path, topic: str, is_now: IsNow, *, loosely: bool) -> dict[str, Any]:
    """
    All that a log directory says about a topic, as it can be compared.
    """
    found: dict[str, Any] = {name: checkpoint(data / name, topic) for name in CHECKPOINTS}
    for directory in sorted(data.glob(f"{topic}-*[0-9]")):
        for path in sorted(directory.iterdir()):
            found[f"{directory.name}/{path.name}"] = content(path, is_now, loosely=loosely)
    return found


def content(path: Path, is_now: IsNow, *, loosely: bool) -> Any:
    data = path.read_bytes()
    suffixes = path.suffixes
    kinds: Mapping[str, Callable[[bytes], Any]] = {
        ".log": lambda data: comparable_batches(data, is_now, loosely=loosely),
        ".timeindex": lambda data: time_index(data, is_now),
        ".snapshot": lambda data: snapshot(data, is_now),
    }
    if suffixes and suffixes[0] in kinds:
        return kinds[suffixes[0]](data)
    if path.name == "partition.metadata":
        return [line.partition(":")[0] for line in data.decode().splitlines()]
    if not suffixes:
        return data.decode(errors="replace").splitlines()
    return data


def time_index(data: bytes, is_now: IsNow) -> bytes | list[tuple[object, int]]:
    """
    The bytes, or the other entries if there are times from the broker's clock: of what arrives in
    the same millisecond there is one entry, and what does is a matter of chance.
    """
    entries = list(TIME_ENTRY.iter_unpack(data[: len(data) // 12 * 12]))
    if any(is_now(time) for time, _ in entries):
        return [(time, offset) for time, offset in entries if not is_now(time)]
    return data


def snapshot(data: bytes, is_now: IsNow) -> dict[str, Any]:
    """
    The producers of a snapshot, whose order means nothing.
    """
    entries = [
        dict(zip(SNAPSHOT_FIELDS, values, strict=True))
        for values in SNAPSHOT_ENTRY.iter_unpack(data[10:])
    ]
    for entry in entries:
        if is_now(entry["timestamp"]):
            entry["timestamp"] = "now"
    return {
        "version": data[:2],
        "producers": sorted(entries, key=lambda entry: entry["producer_id"]),
    }


def checkpoint(path: Path, topic: str) -> list[str]:
    """
    The lines about a topic, whose order means nothing either.
    """
    if not path.exists():
        return []
    lines = path.read_text().splitlines()
    return sorted(line for line in lines if line.split(" ")[0] == topic)
