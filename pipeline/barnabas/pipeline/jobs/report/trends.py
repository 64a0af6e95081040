"""
How the figures of partitions change from run to run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

import matplotlib as mpl
from matplotlib.lines import Line2D

from barnabas.pipeline.jobs.report.facts import Report
from barnabas.pipeline.jobs.report.figures import Figures, Snapshot
from barnabas.pipeline.jobs.report.plots import as_svg, day_of, new_figure, show_dates
from barnabas.storage.explain.units import duration, moment, rounded_size
from barnabas.storage.topic_partition import TopicPartition
from barnabas.storage.units import DAYS, HOURS, GiB, MiB

LINES: Final = 10
"""The most partitions in one plot: as many as there are colours."""
_COLOURS: Final = tuple(mpl.color_sequences["tab10"])


class PartitionRun(NamedTuple):
    """
    A partition in one run.
    """

    at_ms: int
    figures: Figures


class Trend(NamedTuple):
    """
    A partition of a report, run by run.
    """

    partition: TopicPartition
    runs: tuple[PartitionRun | None, ...]
    """One for each run of the history; None for those that were not about it."""

    @property
    def known(self) -> list[PartitionRun]:
        return [run for run in self.runs if run is not None]


def trends_of(report: Report, history: Sequence[Snapshot]) -> list[Trend]:
    """
    All partitions of the *report*. Runs later than it are left out: it may be of a moment before
    them.
    """
    snapshots = [
        (snapshot.at_ms, {each.partition: each for each in snapshot.partitions})
        for snapshot in history
        if snapshot.at_ms <= report.now_ms
    ]
    return [
        Trend(
            facts.partition,
            tuple(
                PartitionRun(at_ms, figures[facts.partition])
                if facts.partition in figures
                else None
                for at_ms, figures in snapshots
            ),
        )
        for facts in report.partitions
    ]


def trend_lines(trends: Sequence[Trend]) -> Iterator[str]:
    """
    What has changed since the first run, partition by partition.
    """
    for trend in trends:
        if len(trend.known) > 1:
            first, last = trend.known[0], trend.known[-1]
            yield (
                f"{trend.partition}: {change(trend)} in {duration(last.at_ms - first.at_ms)},"
                f" over {len(trend.known):,} runs; oldest record {_age(first)} then,"
                f" {_age(last)} now"
            )


def change(trend: Trend) -> str:
    """
    By how much the size has changed over all runs.
    """
    runs = trend.known
    by = runs[-1].figures.size - runs[0].figures.size
    return f"{rounded_size(abs(by))} {'more' if by >= 0 else 'less'}"


TABLE_HEADS: Final = (
    "partition",
    "runs",
    "first run",
    "size then",
    "size now",
    "oldest record then",
    "now",
    "retention.ms then",
    "now",
    "goes with the next check",
)


def table_row(trend: Trend) -> tuple[str, ...]:
    """
    The first and the last run, beside each other.
    """
    first, last = trend.known[0], trend.known[-1]
    due = last.figures.due_bytes
    return (
        str(trend.partition),
        f"{len(trend.known):,}",
        moment(first.at_ms),
        rounded_size(first.figures.size),
        rounded_size(last.figures.size),
        _age(first),
        _age(last),
        _limit(first),
        _limit(last),
        rounded_size(due) if due else "nothing",
    )


def _age(run: PartitionRun) -> str:
    age_ms = run.figures.age_ms(run.at_ms)
    return "without a time" if age_ms is None else f"{duration(age_ms)} old"


def _limit(run: PartitionRun) -> str:
    return duration(run.figures.retention_ms) if run.figures.retention_ms >= 0 else "none"


def size_plot(trends: Sequence[Trend]) -> str:
    """
    The sizes of the largest partitions.
    """
    shown = _largest(trends)
    most = max((run.figures.size for trend in shown for run in trend.known), default=0)
    unit, name = (GiB, "GiB") if most >= GiB else (MiB, "MiB")
    return _plot(shown, lambda run: run.figures.size / unit, f"size, in {name}")


def age_plot(trends: Sequence[Trend]) -> str:
    """
    How old their oldest records are, and how long ``retention.ms`` was.
    """
    shown = _largest(trends)
    ages = [run.figures.age_ms(run.at_ms) or 0 for trend in shown for run in trend.known]
    unit, name = (DAYS, "days") if max(ages, default=0) >= 2 * DAYS else (HOURS, "hours")

    def age(run: PartitionRun) -> float:
        age_ms = run.figures.age_ms(run.at_ms)
        return math.nan if age_ms is None else age_ms / unit

    def limit(run: PartitionRun) -> float:
        limit_ms = run.figures.retention_ms
        return limit_ms / unit if 0 <= limit_ms <= 10 * max(ages) else math.nan

    return _plot(shown, age, f"age of the oldest record, in {name}", limit)


def _plot(
    trends: Sequence[Trend],
    value: Callable[[PartitionRun], float],
    label: str,
    limit: Callable[[PartitionRun], float] | None = None,
) -> str:
    figure, axes = new_figure(8)
    for trend, colour in zip(trends, _COLOURS, strict=False):
        # A run that was not about the partition is a hole in its line.
        times = [math.nan if run is None else day_of(run.at_ms) for run in trend.runs]
        values = [math.nan if run is None else value(run) for run in trend.runs]
        name = str(trend.partition)
        (line,) = axes.plot(times, values, marker="o", markersize=3, color=colour, label=name)
        line.set_gid(f"{label} of {name}")
        if limit is not None:
            limits = [math.nan if run is None else limit(run) for run in trend.runs]
            axes.plot(times, limits, linestyle="--", linewidth=1, color=colour)
    axes.set_ylim(bottom=0)
    axes.set_ylabel(label)
    show_dates(axes)
    handles = [line for line in axes.lines if not str(line.get_label()).startswith("_")]
    if limit is not None:
        handles.append(Line2D([], [], color="#4a5568", linestyle="--", label="retention.ms"))
    axes.legend(handles=handles, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return as_svg(figure)


def _largest(trends: Sequence[Trend]) -> list[Trend]:
    known = [trend for trend in trends if trend.known]
    largest = sorted(known, key=lambda trend: -trend.known[-1].figures.size)[:LINES]
    return sorted(largest, key=lambda trend: trend.partition)
