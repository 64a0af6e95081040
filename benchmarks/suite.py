"""
All measures, in the order in which they run and stand in the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from benchmarks.bench import Bench
from benchmarks.measure import Measure
from benchmarks.measures import (
    consume,
    durability,
    groups,
    kafka_tools,
    latency,
    life,
    many_partitions,
    produce,
    requests,
)


def all_measures(bench: Bench) -> list[Measure]:
    """
    First what needs no broker to run beside it, then the load, last what fills the disk.
    """
    return [
        *life.first_measures(bench),
        *produce.measures(bench),
        *requests.measures(bench),
        *consume.measures(bench),
        *latency.measures(bench),
        *life.peak_memory(bench),
        *kafka_tools.measures(bench),
        *groups.measures(bench),
        *durability.measures(bench),
        *life.last_measures(bench),
        *many_partitions.measures(bench),
    ]


def chosen(measures: Sequence[Measure], only: str, skip: str) -> list[Measure]:
    """
    Those that *only* names and *skip* does not: names or patterns such as ``produce-*``, separated
    by commas.

    Raises:
        ValueError: a pattern fits no measure.
    """
    names = [measure.name for measure in measures]
    wanted, unwanted = ([part for part in text.split(",") if part] for text in (only, skip))
    for pattern in (*wanted, *unwanted):
        if not any(fnmatchcase(name, pattern) for name in names):
            raise ValueError(f"no measure is named {pattern}; there are {', '.join(names)}")
    return [
        measure
        for measure in measures
        if (not wanted or _fits(measure, wanted)) and not _fits(measure, unwanted)
    ]


def _fits(measure: Measure, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(measure.name, pattern) for pattern in patterns)
