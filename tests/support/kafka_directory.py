"""
Log directories that Apache Kafka has written, and what its own tools say about them.

The sets are described in their README: settings of the broker, and a table of topics with their
configs.
"""

from __future__ import annotations

import re
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from barnabas.storage.config.log_config import LogConfig
from barnabas.storage.directories.directory import (
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
)
from barnabas.storage.fs.disk import DiskFiles
from barnabas.storage.log.log import Log
from barnabas.storage.state_files.checkpoints import (
    CLEAN_SHUTDOWN_FILE,
    LeaderEpochCheckpointFile,
    OffsetCheckpointFile,
)
from barnabas.storage.state_files.file_names import parse_topic_partition_name
from tests.support.clock import StillClock
from tests.support.logs import new_log

FILES = DiskFiles()
AFTERWARDS_MS = 1_795_240_000_000
"""Some hours after all of the sets were written."""

_TOPIC = re.compile(r"^\| `([^`]+)` \| \d+ \|(.*)\|$", re.MULTILINE)
_BROKER_SETTING = re.compile(r"`([a-z0-9.]+)=([^`]*)`")
_BATCH = re.compile(
    r"baseOffset: (-?\d+) lastOffset: (-?\d+) count: (-?\d+) baseSequence: (-?\d+) "
    r"lastSequence: (-?\d+) producerId: (-?\d+) producerEpoch: (-?\d+) "
    r"partitionLeaderEpoch: (-?\d+) isTransactional: (\w+) isControl: (\w+) .*"
    r"position: (\d+) (\w+): (-?\d+) size: (\d+) .* crc: (\d+)"
)
_RECORD = re.compile(
    r"\| offset: (\d+) \w+: (-?\d+) keySize: (-?\d+) valueSize: (-?\d+) sequence: (-?\d+) "
    r"headerKeys: \[(.*?)\]"
)


class DumpedBatch(NamedTuple):
    """
    A batch as Kafka's dump tool prints it.
    """

    base_offset: int
    last_offset: int
    record_count: int
    base_sequence: int
    last_sequence: int
    producer_id: int
    producer_epoch: int
    partition_leader_epoch: int
    is_transactional: bool
    is_control: bool
    max_timestamp: int
    size: int
    crc: int


class DumpedRecord(NamedTuple):
    """
    A record as Kafka's dump tool prints it, -1 for the size of what is null.
    """

    offset: int
    timestamp: int
    key_size: int
    value_size: int
    header_keys: str


class KafkaDirectory:
    """
    A copy of a log directory that Apache Kafka has written.
    """

    def __init__(
        self, golden_set: Path, name: str, target: Path, *, only: str | None = None
    ) -> None:
        """
        Copy or unpack *name*, which is data, before or after, into *target*.

        Args:
            only: the one log that is of interest.
        """
        self.golden_set = golden_set
        self.path = target / name

        def is_wanted(path: Path) -> bool:
            return only is None or len(path.parts) < 2 or path.parts[0] == only

        if (golden_set / name).is_dir():
            for path in (golden_set / name).rglob("*"):
                inside = path.relative_to(golden_set / name)
                if path.is_file() and is_wanted(inside):
                    (self.path / inside).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(path, self.path / inside)
        else:
            with tarfile.open(golden_set / f"{name}.tar.gz") as archive:
                members = [
                    member for member in archive if is_wanted(Path(member.name).relative_to(name))
                ]
                archive.extractall(target, members, filter="data")
        self.clock = StillClock(AFTERWARDS_MS)
        self.is_clean = (self.path / CLEAN_SHUTDOWN_FILE).exists()
        self._recovery_points = self._checkpoint(RECOVERY_POINT_CHECKPOINT)
        self._start_offsets = self._checkpoint(LOG_START_OFFSET_CHECKPOINT)
        self._high_watermarks = self._checkpoint(HIGH_WATERMARK_CHECKPOINT)
        self.configs = topic_configs(golden_set)

    def _checkpoint(self, name: str) -> dict[str, int]:
        found = OffsetCheckpointFile(FILES, self.path / name).read()
        return {str(partition): offset for partition, offset in found.items()}

    def logs(self) -> list[str]:
        """
        The directories of logs of topics, but for those that are marked.
        """
        return sorted(
            path.name
            for path in self.path.iterdir()
            if path.is_dir() and "." not in path.name and path.name != "__cluster_metadata-0"
        )

    def open(self, name: str, *, epoch: int | None = None) -> Log:
        """
        Open a log and lead it in *epoch*, or in that in which it was; all of it is acknowledged
        then.
        """
        topic = parse_topic_partition_name(self.path / name).topic
        epoch = self._epoch(name) if epoch is None else epoch
        log = new_log(
            self.path / name,
            self.configs.get(topic),
            files=FILES,
            clock=self.clock,
            log_start_offset=self._start_offsets.get(name, 0),
            recovery_point=self._recovery_points.get(name, 0),
            high_watermark=self._high_watermarks.get(name, 0),
            had_clean_shutdown=self.is_clean,
            producer_config=None,
        )
        if epoch is not None:
            log.assign_epoch_start_offset(epoch, log.log_end_offset)
        return log

    def _epoch(self, name: str) -> int | None:
        """
        The last leader epoch. Opening a log forgets it, if nothing was written in it.
        """
        entries = LeaderEpochCheckpointFile(FILES, self.path / name).read()
        return entries[-1].epoch if entries else None


def topic_configs(golden_set: Path) -> dict[str, LogConfig]:
    """
    The configs of the topics, from the README of the set.
    """
    text = (golden_set / "README.md").read_text()
    broker = dict(_BROKER_SETTING.findall(text[text.index("**Broker settings**") :].split("\n")[0]))
    defaults: dict[str, str | None] = {}
    if "log.index.size.max.bytes" in broker:
        defaults["segment.index.bytes"] = broker["log.index.size.max.bytes"]
    if "log.segment.delete.delay.ms" in broker:
        defaults["file.delete.delay.ms"] = broker["log.segment.delete.delay.ms"]
    return {
        topic: LogConfig.parse({**defaults, **dict(_BROKER_SETTING.findall(configs))})
        for topic, configs in _TOPIC.findall(text)
    }


def dump_of(golden_set: Path, log: str) -> Path:
    """
    The most detailed dump of a log.
    """
    for kind in ("deep", "print", "decoded"):
        path = golden_set / "dump" / f"{log}.log.{kind}.txt"
        if path.exists():
            return path
    return golden_set / "dump" / f"{log}.log.txt"


def dumped_batches(dump: Path) -> Iterator[DumpedBatch]:
    for found in _BATCH.finditer(dump.read_text(errors="replace")):
        numbers = [int(found[group]) for group in (1, 2, 3, 4, 5, 6, 7, 8)]
        flags = found[9] == "true", found[10] == "true"
        yield DumpedBatch._make((*numbers, *flags, int(found[13]), int(found[14]), int(found[15])))


def dumped_records(dump: Path) -> Iterator[DumpedRecord]:
    for found in _RECORD.finditer(dump.read_text(errors="replace")):
        offset, timestamp, key_size, value_size, _sequence, header_keys = found.groups()
        yield DumpedRecord(int(offset), int(timestamp), int(key_size), int(value_size), header_keys)
