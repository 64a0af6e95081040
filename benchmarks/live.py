"""
Rows to a broker and from it: the source ``barnabas`` beside Spark's Kafka connector, which take
turns. Run by ``python -m benchmarks.pipeline --only live``.

All rows that were written are read and counted; values are numbers, whose sum is known.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from benchmarks.spark_connector import TUNED
from benchmarks.turns import turns
from tests.interop.clients.confluent import Confluent
from tests.support.broker_process import Barnabas, BrokerProcess

PARTITIONS: Final = 2
WRITES: Final = ("kafka", "barnabas")
READS: Final[Mapping[str, tuple[str, Mapping[str, str]]]] = {
    "kafka": ("kafka", {}),
    "kafka, tuned": ("kafka", TUNED),
    "barnabas": ("barnabas", {}),
}


class Inexact(Exception):
    """
    What was read is not what was written.
    """


def live(spark: SparkSession, directory: Path, passes: int, records: Mapping[int, int]) -> None:
    """
    Args:
        records: how many of each size, in bytes.
    """
    broker = Barnabas(directory / "live", bounded=False)
    try:
        broker.start()
        for size, count in records.items():
            _Rows(spark, broker, size, count).measure(passes)
    finally:
        broker.close()


class _Rows:
    """
    Records of one size.
    """

    def __init__(self, spark: SparkSession, broker: BrokerProcess, size: int, count: int) -> None:
        self._spark = spark
        self._broker = {"kafka.bootstrap.servers": broker.bootstrap}
        self._bootstrap = broker.bootstrap
        self._size = size
        self._count = count

    def measure(self, passes: int) -> None:
        written = self._in_turns("write", passes, {name: name for name in WRITES}, self._write)
        for name in WRITES:
            self._check(self._topic(name, passes))
        topic = self._topic("kafka", passes)
        read = self._in_turns(
            "read", passes, dict.fromkeys(READS, topic), lambda name, _: self._read(name, topic)
        )
        for what, seconds in (("write", written), ("read", read)):
            base = seconds["kafka"]
            for name, wall in seconds.items():
                rate = self._count / wall / 1e6
                print(
                    f"live {what} {self._size} B, {self._count:,} records, {name:14}{wall:8.2f} s"
                    f"{rate:7.2f} M rec/s {base / wall:6.2f}x",
                    flush=True,
                )

    def _in_turns(
        self,
        what: str,
        passes: int,
        names: Mapping[str, str],
        run: Callable[[str, int], None],
    ) -> dict[str, float]:
        """
        The median seconds of each, without those of the first pass.
        """
        seconds: dict[str, list[float]] = {name: [] for name in names}
        for number in range(passes + 1):
            for name in turns(list(names), number):
                if what == "write":
                    topic = self._topic(name, number)
                    Confluent().create_topic(self._bootstrap, topic, PARTITIONS, {})
                began = time.monotonic()
                run(name, number)
                wall = time.monotonic() - began
                print(f"{what} {self._size} {number} {name}: {wall:.2f} s", file=sys.stderr)
                if number:
                    seconds[name].append(wall)
        return {name: statistics.median(each) for name, each in seconds.items()}

    def _topic(self, name: str, number: int) -> str:
        return f"live-{self._size}-{name}-{number}"

    def _write(self, name: str, number: int) -> None:
        rows = self._spark.range(0, self._count, 1, PARTITIONS).selectExpr(
            f"cast(lpad(string(id), {self._size}, '0') as binary) as value"
        )
        writer = rows.write.format(name).mode("append").options(**self._broker)
        writer.option("topic", self._topic(name, number)).save()

    def _frame(self, name: str, topic: str) -> DataFrame:
        kind, options = READS[name]
        reader = self._spark.read.format(kind).options(**self._broker, **options)
        return reader.options(subscribe=topic, includeHeaders="true").load()

    def _read(self, name: str, topic: str) -> None:
        self._frame(name, topic).write.format("noop").mode("overwrite").save()

    def _check(self, topic: str) -> None:
        """
        Raises:
            Inexact: a row is missing, or there twice.
        """
        numbers = self._frame("barnabas", topic).selectExpr(
            "cast(string(value) as bigint) as number", "length(value) as size"
        )
        (row,) = numbers.selectExpr(
            "count(*)", "sum(number)", "bit_xor(number)", "min(size)", "max(size)"
        ).collect()
        expected = self._spark.range(self._count).selectExpr("bit_xor(id)").collect()[0][0]
        total = self._count * (self._count - 1) // 2
        if tuple(row) != (self._count, total, expected, self._size, self._size):
            raise Inexact(f"{topic}: {row}")
        print(f"live {topic}: {self._count:,} records, exact", flush=True)
