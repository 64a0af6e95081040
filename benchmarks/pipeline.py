"""
Reading log directories as rows: without Spark, and through the source ``barnabas``; and the jobs.

    python -m benchmarks.pipeline                  decoding on one core, Spark on all
    python -m benchmarks.pipeline --cores 1        everything on one core
    python -m benchmarks.pipeline --only decode --passes 5
    python -m benchmarks.pipeline --only jobs      archive, compact and replay
    python -m benchmarks.pipeline --only archive --cores 1 --megabytes 1024
    python -m benchmarks.pipeline --only live --records 10000000   beside Spark's connector

The first pass of each measure warms up and is not counted; of the others the median counts. In
Spark a query gives its rows to the ``noop`` sink. Processor time is that of this process and all
that it has started.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from barnabas.pipeline.jobs.archive.job import archive
from barnabas.pipeline.jobs.compact.job import compact
from barnabas.pipeline.jobs.replay.job import replay
from barnabas.pipeline.rows import scan
from barnabas.protocol.compression import CompressionType
from barnabas.protocol.records.batch import build_batch
from barnabas.protocol.records.record import SimpleRecord
from benchmarks.live import live
from benchmarks.process_tree import ProcessTree
from benchmarks.procfs import adopt_orphans
from tests.interop.clients.confluent import Confluent
from tests.support.broker_process import Barnabas, BrokerProcess
from tests.support.log_directory import WrittenDirectory
from tests.support.segments import FIRST_TIMESTAMP
from tests.support.spark import start_session

_MB: Final = 1_000_000
_VALUES: Final = 200
SIZES: Final = {"1 KB": 1000, "100 B": 80}


@dataclass(frozen=True, slots=True)
class Logs:
    """
    A log directory, and how much is in it.
    """

    path: Path
    records: int
    size: int


@dataclass(frozen=True, slots=True)
class Cost:
    """
    Seconds by the clock, and of processor time.
    """

    wall: float
    cpu: float


def write(
    path: Path,
    *,
    size: int,
    total: int,
    per_batch: int = 100,
    segment_bytes: int = 128 << 20,
    partitions: int = 1,
    codec: CompressionType = CompressionType.NONE,
) -> Logs:
    """
    Logs of *total* bytes in all, before compression, with values of about *size* bytes.
    """
    directory = WrittenDirectory(path)
    chance = random.Random(1)
    values = [chance.randbytes(int(size * chance.uniform(0.8, 1.2))) for _ in range(_VALUES)]
    records = written = 0
    for partition in range(partitions):
        log = directory.log("events", partition, segment_bytes=segment_bytes)
        offset = 0
        while written < total * (partition + 1) // partitions:
            numbers = range(offset, offset + per_batch)
            batch = build_batch(
                [
                    SimpleRecord(
                        FIRST_TIMESTAMP + number,
                        b"key-%09d" % number if number % 20 else None,
                        values[number % _VALUES],
                    )
                    for number in numbers
                ],
                compression=codec,
            )
            log.append_as_leader(memoryview(batch), 0)
            # Records are refused that are more than an hour ahead of the clock.
            directory.clock.advance(per_batch)
            offset += per_batch
            written += len(batch)
        records += offset
        # What is still written to is not archived.
        log.roll()
    directory.stop()
    stored = sum(file.stat().st_size for file in path.glob("*/*.log"))
    return Logs(path, records, stored)


def segmented(directory: Path, size: int, megabytes: int) -> Logs:
    """
    Logs in several segments; the same ones if they were asked for before.
    """
    path = directory / f"rows-{size}"
    logs = _written.get(path)
    if logs is None:
        logs = write(path, size=size, total=megabytes * _MB, segment_bytes=32 << 20)
        _written[path] = logs
    return logs


_written: Final[dict[Path, Logs]] = {}


def measured(passes: int, run: Callable[[], object]) -> Cost:
    costs = []
    processes = ProcessTree(os.getpid())
    for _ in range(passes + 1):
        cpu, wall = processes.seconds(), time.perf_counter()
        run()
        costs.append(Cost(time.perf_counter() - wall, processes.seconds() - cpu))
    counted = costs[1:]
    return Cost(
        statistics.median(cost.wall for cost in counted),
        statistics.median(cost.cpu for cost in counted),
    )


def show(title: str, logs: Logs, cost: Cost) -> None:
    print(
        f"{title:34}{cost.wall:7.2f} s {logs.size / cost.wall / _MB:8.0f} MB/s "
        f"{logs.records / cost.wall / _MB:7.2f} M rec/s    per CPU second: "
        f"{logs.size / cost.cpu / _MB:6.0f} MB {logs.records / cost.cpu / _MB:6.2f} M rec",
        flush=True,
    )


@contextmanager
def one_core() -> Iterator[None]:
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def decode(directory: Path, passes: int, megabytes: int) -> None:
    """
    All columns, in this process, on one core.
    """
    shapes: Sequence[tuple[str, int, int, CompressionType]] = [
        ("1 KB", 1000, 100, CompressionType.NONE),
        ("100 B", 80, 100, CompressionType.NONE),
        ("100 B, 10 a batch", 80, 10, CompressionType.NONE),
        ("100 B, 10,000 a batch", 80, 10_000, CompressionType.NONE),
        ("1 KB, lz4", 1000, 100, CompressionType.LZ4),
        ("1 KB, zstd", 1000, 100, CompressionType.ZSTD),
    ]
    for number, (name, size, per_batch, codec) in enumerate(shapes):
        logs = write(
            directory / f"decode-{number}",
            size=size,
            total=megabytes * _MB,
            per_batch=per_batch,
            codec=codec,
        )

        def run(path: Path = logs.path) -> None:
            for _ in scan(str(path), {"includeHeaders": "true"}):
                pass

        with one_core():
            show(f"decode {name}", logs, measured(passes, run))


def query(
    spark: SparkSession, logs: Logs, *, columns: str | None = None, **options: str
) -> Callable[[], None]:
    def run() -> None:
        reader = spark.read.format("barnabas").options(includeHeaders="true", **options)
        if columns:
            reader = reader.schema(columns)
        reader.load(str(logs.path)).write.format("noop").mode("overwrite").save()

    return run


def rows(spark: SparkSession, directory: Path, passes: int, megabytes: int) -> None:
    """
    What of them comes into Spark, and how soon.
    """
    queries: Mapping[str, tuple[str | None, dict[str, str]]] = {
        "all columns": (None, {}),
        "offset and timestamp": ("offset long, timestamp timestamp", {}),
        "level=batches": (None, {"level": "batches"}),
    }
    for name, size in SIZES.items():
        logs = segmented(directory, size, megabytes)
        for what, (columns, options) in queries.items():
            run = query(spark, logs, columns=columns, **options)
            show(f"Spark {name}, {what}", logs, measured(passes, run))


def archived(spark: SparkSession, directory: Path, passes: int, megabytes: int) -> None:
    """
    Logs as Parquet; all of it stays in Spark's workers.
    """
    numbers = count()
    for name, size in SIZES.items():
        logs = segmented(directory, size, megabytes)

        def to_archive(path: Path = logs.path) -> None:
            archive(spark, str(path), directory / f"archive-{next(numbers)}")

        show(f"archive {name}", logs, measured(passes, to_archive))


def jobs(spark: SparkSession, directory: Path, passes: int, megabytes: int) -> None:
    """
    The latest records, nearly all of whose keys are different; and archives back to a broker.
    """
    numbers = count()
    for name, size in SIZES.items():
        logs = segmented(directory, size, megabytes)

        def to_latest(path: Path = logs.path) -> None:
            compact(spark, str(path), directory / f"compacted-{next(numbers)}")

        show(f"compact {name}", logs, measured(passes, to_latest))
    with running(Barnabas(directory / "broker", bounded=False)) as broker:
        replayed(spark, directory, passes, megabytes, broker)


def replayed(
    spark: SparkSession, directory: Path, passes: int, megabytes: int, broker: BrokerProcess
) -> None:
    """
    An eighth of it, for records are sent one by one.
    """
    numbers = count()
    for name, size in SIZES.items():
        logs = write(directory / f"replay-{size}", size=size, total=megabytes * _MB // 8)
        there = directory / f"replay-{size}.archive"
        archive(spark, str(logs.path), there)

        def to_broker(there: Path = there, size: int = size) -> None:
            topic = f"replayed-{size}-{next(numbers)}"
            Confluent().create_topic(broker.bootstrap, topic, 1, {"retention.ms": "-1"})
            replay(spark, there, "events", broker.bootstrap, to=topic)

        show(f"replay {name}, with the broker", logs, measured(passes, to_broker))


@contextmanager
def running(broker: BrokerProcess) -> Iterator[BrokerProcess]:
    try:
        broker.start()
        yield broker
    finally:
        broker.close()


def tiny(spark: SparkSession, directory: Path, passes: int) -> None:
    """
    5,000 segments of 1 KB.
    """
    logs = write(
        directory / "tiny",
        size=80,
        total=5_000_000,
        per_batch=10,
        segment_bytes=1200,
        partitions=50,
    )
    segments = len(list(logs.path.glob("*/*.log")))
    show(f"Spark {segments} tiny segments", logs, measured(passes, query(spark, logs)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=["decode", "rows", "tiny", "archive", "jobs", "live"])
    parser.add_argument("--cores", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--megabytes", type=int, default=256)
    parser.add_argument(
        "--records", type=int, default=2_000_000, help="of 100 B to a broker; of 1 KB a tenth"
    )
    arguments = parser.parse_args()
    adopt_orphans()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-arguments.cores :])
    with tempfile.TemporaryDirectory(prefix="barnabas-pipeline-") as name:
        directory = Path(name)
        if arguments.only in (None, "decode"):
            decode(directory, arguments.passes, arguments.megabytes)
        if arguments.only == "decode":
            return
        spark = start_session(directory, cores=arguments.cores, memory="2g", java_options="")
        if arguments.only in (None, "rows"):
            rows(spark, directory, arguments.passes, arguments.megabytes)
        if arguments.only in (None, "tiny"):
            tiny(spark, directory, arguments.passes)
        if arguments.only in (None, "archive", "jobs"):
            archived(spark, directory, arguments.passes, arguments.megabytes)
        if arguments.only in (None, "jobs"):
            jobs(spark, directory, arguments.passes, arguments.megabytes)
        if arguments.only in (None, "live"):
            records = {100: arguments.records, 1024: arguments.records // 10}
            live(spark, directory, arguments.passes, records)
        spark.stop()


if __name__ == "__main__":
    main()
