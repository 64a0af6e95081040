"""
Load through Apache Kafka's own tools, which run on a virtual machine that warms up first.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from typing import Final

from benchmarks.measure import Unavailable
from tests.support.apache_kafka import PrerequisiteMissing, java

NAME: Final = "Kafka's tools"
LONGEST: Final = 300.0

_SUMMARY: Final = re.compile(
    r"(?P<records>\d+) (?:steady state )?records sent.*?, (?P<per_second>[\d.]+) records/sec"
)
_AVERAGE: Final = re.compile(r"Avg latency: ([\d.]+) ms")
_PERCENTILE: Final = re.compile(r"(\d+) ms (50th|95th|99th|99\.9th)")
_KEYS: Final = {"50th": "p50", "95th": "p95", "99th": "p99", "99.9th": "p999"}


def produce(
    bootstrap: str,
    topic: str,
    records: int,
    *,
    warm_up: int,
    size: int,
    per_second: int = -1,
    settings: Mapping[str, str] | None = None,
) -> dict[str, float]:
    """
    What ``kafka-producer-perf-test`` says of the records after the first *warm_up* ones: records a
    second, and percentiles of the time to their acknowledgement in ms.

    Raises:
        Unavailable: there is no Java.
    """
    properties = {"bootstrap.servers": bootstrap, **(settings or {})}
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
        str(per_second),
        "--reporting-interval",
        "600000",
        "--command-property",
        *(f"{name}={value}" for name, value in properties.items()),
    )
    return parse_produced(text)


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
    The figures in what ``kafka-producer-perf-test`` printed last: those without the warm-up.
    """
    line = text.strip().splitlines()[-1]
    summary = _SUMMARY.search(line)
    assert summary is not None, text
    values = {_KEYS[name]: float(number) for number, name in _PERCENTILE.findall(line)}
    return {"per_second": float(summary["per_second"]), **values}


def parse_consumed(text: str) -> dict[str, float]:
    """
    The figures in what ``kafka-consumer-perf-test`` printed last: times, MB, records, joining.
    """
    fields = [field.strip() for field in text.strip().splitlines()[-1].split(",")]
    records, fetching_ms = float(fields[4]), float(fields[7])
    return {"records": records, "seconds": fetching_ms / 1000}


def _output(main_class: str, *arguments: str) -> str:
    try:
        command = java(main_class, *arguments, heap="512m", level="error", options=())
    except PrerequisiteMissing as missing:
        raise Unavailable(str(missing)) from missing
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=LONGEST, text=True)
    return done.stdout
