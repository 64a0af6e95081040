"""
Apache Kafka's cleaner and ours, given the same directories: the bytes that they leave.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Final

import pytest

from barnabas.protocol.compression import CompressionType
from barnabas.protocol.records.batch import batches
from barnabas.storage.cleaner.cleanable import LogToClean
from barnabas.storage.errors import KafkaError
from barnabas.storage.fs.disk import DiskFiles
from tests.support.cleaning import new_cleaner
from tests.support.clock import StillClock
from tests.support.java_programs import run_program
from tests.support.legacy_logs import LegacyWriter
from tests.support.random_logs import RandomLog
from tests.support.some import some

pytestmark = pytest.mark.prove

SOURCE: Final = Path(__file__).parent / "java" / "CleanLog.java"
FILES: Final = DiskFiles()
NOW_MS: Final = 1_700_000_500_000
DAY_SECONDS: Final = 86_400
ROUNDS: Final = 3
"""With horizons of a second and less, what is marked in one round is gone in the next one."""

FAILED: Final = "error"


def kafkas_cleaner(jobs: Iterable[list[str]]) -> list[list[str]]:
    """
    Run Kafka's cleaner with a list of jobs; see the Java program.
    """
    lines = ("\t".join(job) + "\n" for job in jobs)
    printed = run_program(SOURCE, lines=lines, level="error")
    return [line.split("\t") for line in printed.splitlines()]


class TwoLogs:
    """
    A random log twice, and how it is cleaned.
    """

    def __init__(
        self, seed: int, directory: Path, codec: CompressionType, *, magic: int | None = None
    ) -> None:
        """
        Args:
            magic: the format version of segments that are older than the rest.
        """
        self.clock = StillClock(NOW_MS - 400_000)
        self.ours = directory / f"{seed}-barnabas" / "t-0"
        self.kafkas = directory / f"{seed}-kafka" / "t-0"
        self.log = RandomLog(seed, self.ours, FILES, self.clock, codec=codec)
        if magic is not None:
            self._write_old_segments(Random(seed), magic, codec)
        self.log.write(60)
        shutil.copytree(self.ours, self.kafkas)
        opened = self.log.open("compact")
        self.uncleanable_offset = opened.active_segment.base_offset
        opened.close()
        self.first_dirty_offset = 0
        # Large enough, or too small for all keys; and for the largest batches.
        self.slots = self.log.random.choice((5000, 5000, 12, 30))
        self.buffer_bytes = self.log.random.choice((300, 2000, 65_536))

    def _write_old_segments(self, random: Random, magic: int, codec: CompressionType) -> None:
        writer = LegacyWriter(random, magic=magic, codecs=(CompressionType.NONE, codec))
        self.ours.mkdir(parents=True)
        for number in range(4):
            path = self.ours / f"{writer.next_offset:020d}.log"
            path.write_bytes(writer.segment(random.randint(1, 40)))
            modified = NOW_MS // 1000 - (9 - number) * DAY_SECONDS
            os.utime(path, (modified, modified))

    def job(self) -> list[str]:
        return [
            str(self.kafkas),
            str(self.clock.now_ms()),
            str(self.first_dirty_offset),
            str(self.uncleanable_offset),
            str(self.slots),
            str(self.buffer_bytes),
            "cleanup.policy=compact",
            *(f"{name}={value}" for name, value in self.log.configs.items()),
        ]

    def clean(self) -> list[str]:
        cleaner = new_cleaner(
            self.clock,
            slots=self.slots,
            io_buffer_bytes=self.buffer_bytes,
            max_io_buffer_bytes=self.buffer_bytes,
        )
        log = self.log.open("compact")
        try:
            end, stats = cleaner.clean(
                LogToClean(
                    log=log,
                    first_dirty_offset=self.first_dirty_offset,
                    uncleanable_offset=self.uncleanable_offset,
                )
            )
        except (ValueError, KafkaError):
            return [FAILED]
        finally:
            log.close()
        self.first_dirty_offset = min(end, self.uncleanable_offset)
        counters = (
            end,
            stats.map_messages_read,
            stats.messages_read,
            stats.invalid_messages_read,
            stats.messages_written,
            stats.bytes_read,
            stats.bytes_written,
        )
        return [str(counter) for counter in counters]


def files_of(directory: Path) -> dict[str, tuple[bytes, float]]:
    """
    Names, contents and times of the files that make up a log.

    A cleaning that failed leaves an unfinished segment with Kafka, until the next start.
    """
    return {
        path.name: (path.read_bytes(), path.stat().st_mtime if path.suffix == ".log" else 0)
        for path in directory.iterdir()
        if path.suffix not in (".deleted", ".cleaned") and path.name != "leader-epoch-checkpoint"
    }


def contents_of(directory: Path) -> list[tuple[object, ...]]:
    """
    What is in the batches of a log, whatever a compressor made of it.
    """
    return [
        (*batch[:1], *batch[2:4], *batch[5:13], list(batch.records()))
        for path in sorted(directory.glob("*.log"))
        for batch in batches(path.read_bytes())
    ]


def test_random_logs_are_cleaned_to_the_same_bytes_as_by_kafka(tmp_path: Path) -> None:
    """
    Segments, indexes, transaction indexes, snapshots, the time of the segments and all counters.
    """
    compare([TwoLogs(seed, tmp_path, CompressionType.LZ4) for seed in range(60)])


@pytest.mark.parametrize("magic", [0, 1])
def test_old_format_logs_are_cleaned_to_the_same_batches_as_by_kafka(
    tmp_path: Path, magic: int
) -> None:
    """
    Of logs that began before Apache Kafka 0.11, also in the segments that are left as they were.
    """
    seeds = range(2000, 2012)
    compare(
        [TwoLogs(seed, tmp_path, CompressionType.LZ4, magic=magic) for seed in seeds],
    )


def compare(logs: list[TwoLogs]) -> None:
    """
    Clean all of them several times, here and there.
    """
    cleanings, compared = 2 * len(logs), 0
    for _ in range(ROUNDS):
        answers = kafkas_cleaner([log.job() for log in logs])
        for log, answer in some(zip(list(logs), answers, strict=True)):
            ours = log.clean()
            assert answer[:1] == ours[:1] if FAILED in ours else answer == ours, log.job()
            assert files_of(log.kafkas) == files_of(log.ours), log.job()
            log.clock.advance(1000)
            if FAILED in ours:
                # An index of a few entries was full, as the first batch of every segment has none.
                logs.remove(log)
            else:
                compared += 1

    assert compared > cleanings


@pytest.mark.parametrize(
    "codec", [CompressionType.GZIP, CompressionType.SNAPPY, CompressionType.ZSTD]
)
def test_cleaned_batches_are_equivalent_where_codec_libraries_differ(
    tmp_path: Path, codec: CompressionType
) -> None:
    logs = [TwoLogs(seed, tmp_path, codec) for seed in range(1000, 1010)]

    answers = kafkas_cleaner([log.job() for log in logs])

    for log, answer in some(zip(logs, answers, strict=True)):
        assert answer[:5] == log.clean()[:5]
        assert contents_of(log.kafkas) == contents_of(log.ours)
