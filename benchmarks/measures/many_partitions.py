"""
What very many partitions cost: the measures of ``benchmarks.partitions`` as lines of the table.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from typing import Final

from benchmarks import partitions
from benchmarks.bench import Bench
from benchmarks.contender import Contender
from benchmarks.measure import Figure, Goal, Measure, Run, Values
from benchmarks.topics import produce_when_possible

PARTITIONS: Final = 10_000


def measures(bench: Bench) -> list[Measure]:
    """
    One, of many figures, and in one pass: it takes minutes.
    """
    count = bench.count(PARTITIONS)
    figures = tuple(_figure(figure, count) for figure in partitions.FIGURES)
    taken = partial(_taken, count)
    return [Measure("partitions-10000", "librdkafka", taken, figures, 0, most_passes=1)]


def _figure(figure: partitions.Figure, count: int) -> Figure:
    title = figure.title.strip()
    is_further = figure.title.startswith(" ")
    return Figure(
        figure.name,
        f"- {title}" if is_further else f"{count:,} partitions: {title}",
        figure.unit,
        True,
        "partitions",
        None if figure.goal is None else Goal.RATIO_AT_MOST,
        figure.goal or 0.0,
    )


@contextmanager
def _taken(count: int, contender: Contender) -> Iterator[Run]:
    with contender.another("partitions") as broker:
        broker.start_timeout = 4 * partitions.LONGEST_S

        def run() -> Values:
            broker.launch()
            produce_when_possible(broker)
            try:
                return asdict(partitions.measure(broker, count))
            finally:
                broker.close()  # One of them fills a small machine.

        yield run
