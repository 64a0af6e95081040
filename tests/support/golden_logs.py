"""
Log files written by Apache Kafka.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from barnabas.protocol.records.batch import RecordBatch, batches


def golden_batches(golden: Path, pattern: str) -> Iterator[RecordBatch]:
    """
    The batches of all log files of stopped brokers that match *pattern*, at least one.
    """
    paths = sorted(path for path in golden.glob(pattern) if path.stat().st_size)
    assert paths, f"{golden} has no {pattern}"
    for path in paths:
        yield from batches(path.read_bytes())
