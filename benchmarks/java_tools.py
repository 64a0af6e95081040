"""
Load through Apache Kafka's own tools and client, on a virtual machine that warms up first.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.measure import Unavailable
from tests.support.apache_kafka import PrerequisiteMissing, java
from tests.support.java_programs import compiled

NAME: Final = "Kafka's tools"
LONGEST: Final = 300.0
PACED: Final = Path(__file__).parent / "PacedProducer.java"
PERCENTILES: Final = ("p50", "p95", "p99", "p999")

_SUMMARY: Final = re.compile(
    r"(?P<records>\d+) (?:steady state )?records sent.*?, (?P<per_second>[\d.]+) records/sec"
)
_AVERAGE: Final = re.compile(r"Avg latency: ([\d.]+) ms")


def produce(
    bootstrap: str, topic: str, records: int, *, warm_up: int, size: int
) -> dict[str, float]:
    """
    What ``kafka-producer-perf-test`` says of the records after the first *warm_up* ones: records a
    second.

    Raises:
        Unavailable: there is no Java.
    """
    text = _output(
        "org.apache.kafka.tools.ProducerPerformance",
        "--topic",
        topic,
        "--num-records",
        str(warm_up + records),
        "--warmup-records",
        str(warm_up),
        "--record-size",
        str(size),
        "--throughput",
        "-1",
        "--reporting-interval",
        "600000",
        "--command-property",
        f"bootstrap.servers={bootstrap}",
    )
    return parse_produced(text)


def produce_paced(
    bootstrap: str, topic: str, records: int, *, warm_up: int, size: int, per_second: int
) -> dict[str, float]:
    """
    Percentiles of the time to the acknowledgement in ms, of the records after the first *warm_up*
    ones. ``kafka-producer-perf-test`` has whole milliseconds only, so this is a program of ours on
    Kafka's producer, without linger.

    Raises:
        Unavailable: there is no Java, or Maven could not fetch Kafka.
    """
    try:
        classes = compiled(PACED)
    except PrerequisiteMissing as missing:
        raise Unavailable(str(missing)) from missing
    numbers = (str(number) for number in (warm_up, records, size, per_second))
    text = _output(PACED.stem, bootstrap, topic, *numbers, extra_class_path=classes)
    return dict(zip(PERCENTILES, map(float, text.split()), strict=True))


def consume(
    bootstrap: str, topic: str, records: int, settings: Sequence[str] = ()
) -> dict[str, float]:
    """
    Records and seconds of ``kafka-consumer-perf-test``, without the time to join its group.

    Raises:
        Unavailable: there is no Java.
    """
    text = _output(
        "org.apache.kafka.tools.ConsumerPerformance",
        "--bootstrap-server",
        bootstrap,
        "--topic",
        topic,
        "--num-records",
        str(records),
        "--hide-header",
        "--timeout",
        "60000",
    )
    return parse_consumed(text)


def share(
    bootstrap: str, topic: str, records: int, *, group: str, consumers: int
) -> dict[str, float]:
    """
    Records and seconds of ``kafka-share-consumer-perf-test``, with the time to join the group.

    Args:
        consumers: members of the group, each in a thread of its own.

    Raises:
        Unavailable: there is no Java.
    """
    text = _output(
        "org.apache.kafka.tools.ShareConsumerPerformance",
        "--bootstrap-server",
        bootstrap,
        "--topic",
        topic,
        "--group",
        group,
        "--threads",
        str(consumers),
        "--num-records",
        str(records),
        "--hide-header",
        "--timeout",
        "60000",
    )
    return parse_shared(text)


def end_to_end(bootstrap: str, topic: str, records: int, size: int) -> dict[str, float]:
    """
    What ``EndToEndLatency`` says: a record is sent when the one before it was consumed. Its
    percentiles are whole milliseconds, so that only the average tells something.

    Raises:
        Unavailable: there is no Java.
    """
    numbers = (str(records), "all", str(size))
    text = _output("org.apache.kafka.tools.EndToEndLatency", bootstrap, topic, *numbers)
    found = _AVERAGE.search(text)
    assert found is not None, text
    return {"average": float(found[1])}


def parse_produced(text: str) -> dict[str, float]:
    """
    The figure in what ``kafka-producer-perf-test`` printed last: that without the warm-up.
    """
    line = text.strip().splitlines()[-1]
    summary = _SUMMARY.search(line)
    assert summary is not None, text
    return {"per_second": float(summary["per_second"])}


def parse_consumed(text: str) -> dict[str, float]:
    """
    The figures in what ``kafka-consumer-perf-test`` printed last: times, MB, records, joining.
    """
    fields = [field.strip() for field in text.strip().splitlines()[-1].split(",")]
    records, fetching_ms = float(fields[4]), float(fields[7])
    return {"records": records, "seconds": fetching_ms / 1000}


def parse_shared(text: str) -> dict[str, float]:
    """
    The figures in what ``kafka-share-consumer-perf-test`` printed last: times, MB, records, ms.
    """
    fields = [field.strip() for field in text.strip().splitlines()[-1].split(",")]
    return {"records": float(fields[5]), "seconds": float(fields[6]) / 1000}


def _output(main_class: str, *arguments: str, extra_class_path: str = "") -> str:
    try:
        command = java(
            main_class,
            *arguments,
            heap="512m",
            level="error",
            options=(),
            extra_class_path=extra_class_path,
        )
    except PrerequisiteMissing as missing:
        raise Unavailable(str(missing)) from missing
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=LONGEST, text=True)
    return done.stdout
