"""
Plots of a run: ratios with their goals, rates, processor time, latencies, durability.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Final

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import EngFormatter, LogLocator, NullLocator

from benchmarks.measure import Goal
from benchmarks.results import APACHE_KAFKA, BARNABAS, Line, Measured, Results, is_dial

COLORS: Final = {APACHE_KAFKA: "#9aa3ad", BARNABAS: "#1f6f8b"}
OTHER_COLORS: Final = ("#e09f3e", "#7b5ea7", "#6a994e", "#bc4749")
GOOD, BAD = "#2a9d5c", "#d1495b"
TICKS: Final = (0.25, 0.5, 1, 2, 4, 8, 16, 32)
PERCENTILES: Final = {"p50": "p50", "p95": "p95", "p99": "p99", "p999": "p99.9"}

Lines = Sequence[Line]


def draw(results: Results, directory: Path) -> list[Path]:
    """
    Write each plot that there are figures for; the files.
    """
    mpl.use("svg")
    mpl.rcParams.update({"svg.hashsalt": "barnabas", "svg.fonttype": "none", "font.size": 9})
    directory.mkdir(parents=True, exist_ok=True)
    plots: dict[str, Callable[[Results], Canvas | None]] = {
        "ratios": _ratios,
        "rates": _rates,
        "cpu": _cpu,
        "latency": _latency,
        "durability": _durability,
    }
    written = []
    for name, plot in plots.items():
        canvas = plot(results)
        if canvas is not None:
            path = directory / f"performance-{name}.svg"
            canvas.savefig(path, metadata={"Date": None}, bbox_inches="tight")
            written.append(path)
    return written


def _ratios(results: Results) -> Canvas | None:
    """
    How many times better Barnabas is, on every line with a goal.
    """
    lines = [line for line in results.lines() if line.figure.goal and line.ratio]
    if not lines:
        return None
    canvas, axes = _canvas(len(lines))
    for place, line in enumerate(reversed(lines)):
        color = BAD if line.is_met is False else GOOD
        times = _times_better(line, line.ratio or 1)
        axes.barh(place, times - 1, left=1, color=color, height=0.6)
        beside = axes.get_yaxis_transform()
        axes.text(1.01, place, f"{times:.2g}x", va="center", fontsize=8, transform=beside)
        if line.figure.goal is not Goal.AT_MOST:
            goal = _times_better(line, line.figure.limit)
            axes.plot([goal, goal], [place - 0.4, place + 0.4], color="black", linewidth=1.5)
    axes.set_xscale("log")
    axes.set_xticks(TICKS, [f"{tick:g}x" for tick in TICKS])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.axvline(1, color="gray", linewidth=0.8)
    _name(axes, [_full_title(line) for line in lines])
    axes.set_title("Barnabas, times better than Apache Kafka (black: the goal)")
    return canvas


def _colors(results: Results) -> dict[str, str]:
    """
    Those of the two, and one for each further broker.
    """
    others = (name for name in results.brokers() if name not in COLORS)
    return {**COLORS, **dict(zip(others, cycle(OTHER_COLORS), strict=False))}


def _times_better(line: Line, ratio: float) -> float:
    return 1 / ratio if line.figure.less_is_better else ratio


def _rates(results: Results) -> Canvas | None:
    lines = [line for line in results.lines() if line.figure.group == "rate"]
    lines = [line for line in lines if not is_dial(line.measured)]
    return _points(lines, "records a second", _colors(results))


def _cpu(results: Results) -> Canvas | None:
    lines = [line for line in results.lines() if line.figure.group == "cpu"]
    title = "seconds of the broker's processor time for a million records"
    return _points([line for line in lines if not is_dial(line.measured)], title, _colors(results))


def _durability(results: Results) -> Canvas | None:
    """
    What each position of the dial lets through.
    """
    lines = [line for line in results.lines() if line.figure.group == "megabytes"]
    title = "megabytes a second, by what an answer promises"
    return _points([line for line in lines if is_dial(line.measured)], title, _colors(results))


def _points(lines: Lines, title: str, colors: Mapping[str, str]) -> Canvas | None:
    """
    A point for each broker, on a scale that has room for all lines.
    """
    if not lines:
        return None
    canvas, axes = _canvas(len(lines))
    for place, line in enumerate(reversed(lines)):
        values = {name: line.measured.median(name, line.figure) for name in colors}
        known = {name: value for name, value in values.items() if value}
        axes.plot(list(known.values()), [place] * len(known), color="#d5dae0", zorder=1)
        for name, value in known.items():
            axes.scatter(value, place, color=colors[name], s=36, zorder=2)
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_title(title)
    _name(axes, [line.measured.figures[0].title for line in lines])
    _explain(axes, colors)
    return canvas


def _latency(results: Results) -> Canvas | None:
    """
    Percentiles of each kind of latency, on a grid.
    """
    kinds = [
        (measured, figure.key.removesuffix("p50"), figure.title.removesuffix(", p50"))
        for measured in results.measured
        for figure in measured.figures
        if measured.samples and figure.key.endswith("p50") and not figure.title.startswith("- ")
    ]
    if not kinds:
        return None
    colors = _colors(results)
    canvas = Canvas(figsize=(3.2 * len(kinds), 2.8), layout="constrained")
    row = canvas.subplots(1, len(kinds), sharey=True, squeeze=False)[0]
    for axes, (measured, prefix, title) in zip(row, kinds, strict=True):
        _percentiles(axes, measured, prefix, colors)
        axes.set_title(title, fontsize=9)
    row[0].set_ylabel("ms")
    _explain(row[0], colors)
    return canvas


def _percentiles(axes: Axes, measured: Measured, prefix: str, colors: Mapping[str, str]) -> None:
    figures = {figure.key: figure for figure in measured.figures}
    for name, color in colors.items():
        medians = [measured.median(name, figures[prefix + key]) for key in PERCENTILES]
        points = [median for median in medians if median is not None]
        if points:
            axes.plot(list(PERCENTILES.values()), points, marker="o", color=color)
    axes.set_yscale("log")
    axes.grid(visible=True, alpha=0.3)


def _canvas(rows: int) -> tuple[Canvas, Axes]:
    canvas = Canvas(figsize=(8, 0.8 + 0.32 * rows), layout="constrained")
    return canvas, canvas.add_subplot()


def _name(axes: Axes, titles: Sequence[str]) -> None:
    axes.set_yticks(range(len(titles)), [title.removeprefix("- ") for title in reversed(titles)])
    axes.set_ylim(-0.6, len(titles) - 0.4)
    axes.grid(visible=True, axis="x", alpha=0.3)
    axes.set_axisbelow(True)


def _full_title(line: Line) -> str:
    """
    With the measure's, for a line that is one of several.
    """
    title = line.figure.title
    first = line.measured.figures[0].title.removesuffix(", p50")
    return title if title == first else f"{first}: {title.removeprefix('- ')}"


def _explain(axes: Axes, colors: Mapping[str, str]) -> None:
    """
    Which colour is whose.
    """
    for name, color in colors.items():
        axes.plot([], [], "o", color=color, label=name)
    axes.legend(loc="best", fontsize=8)
