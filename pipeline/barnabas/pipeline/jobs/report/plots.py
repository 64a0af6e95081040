"""
The plots of a report, as SVG.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

import matplotlib as mpl
import matplotlib.dates as mdates
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import StrMethodFormatter

from barnabas.pipeline.jobs.report.facts import PartitionFacts, Report, SegmentFacts

_HELD, _SURE, _PERHAPS, _NOW = "#1f5a94", "#8db8e2", "#dbe8f5", "#c0392b"
_CODECS: Final = {
    "none": "#9aa5b1",
    "gzip": "#b7791f",
    "snappy": "#2f855a",
    "lz4": "#2b6cb0",
    "zstd": "#6b46c1",
}
_ROWS: Final = 40
"""The most partitions in one plot: the largest ones."""
_SEGMENTS: Final = 150
"""The most segments of a partition that a plot shows: the newest ones."""
_BAND: Final = 0.7
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST_MS: Final = (datetime(9000, 1, 1, tzinfo=UTC) - _EPOCH) // timedelta(milliseconds=1)
"""The margin behind it has to lie before the year 10000."""
_SETTINGS: Final[dict[Any, Any]] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "barnabas",
    "font.size": 9.0,
}


def _largest(report: Report) -> list[PartitionFacts]:
    chosen = sorted(report.partitions, key=lambda facts: -facts.size)[:_ROWS]
    return sorted(chosen, key=lambda facts: facts.partition)


def retention_plot(report: Report) -> str:
    """
    Each segment from its oldest record to the last moment at which it can be read, one below the
    other within the row of their partition.
    """
    rows = _largest(report)
    figure, axes = new_figure(2 * len(rows))
    for row, facts in enumerate(rows):
        segments = facts.segments[-_SEGMENTS:]
        height = _BAND / len(segments)
        for number, segment in enumerate(segments):
            lane = _Lane(axes, row + (number + 0.5) * height - _BAND / 2, height)
            _draw_segment(lane, segment, report.now_ms)
    axes.axvline(day_of(report.now_ms), color=_NOW, linewidth=1.2)
    show_dates(axes)
    _name_rows(axes, [str(facts.partition) for facts in rows])
    handles = [
        Patch(color=_HELD, label="timestamps of a segment's records"),
        Patch(color=_SURE, label="readable at least until"),
        Patch(color=_PERHAPS, label="at most until (an arrow: no bound)"),
        Line2D([], [], color=_NOW, label="now"),
    ]
    axes.legend(handles=handles, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=4)
    return as_svg(figure)


class _Lane(NamedTuple):
    """
    Where a segment is drawn.
    """

    axes: Axes
    middle: float
    height: float

    def bar(self, begin_ms: int, end_ms: int, colour: str) -> None:
        self.axes.barh(
            self.middle,
            day_of(end_ms) - day_of(begin_ms),
            left=day_of(begin_ms),
            height=self.height,
            color=colour,
        )


def _draw_segment(lane: _Lane, segment: SegmentFacts, now_ms: int) -> None:
    lifetime, counts = segment.lifetime, segment.counts
    if counts is None or counts.first_ms is None or not lifetime.has_timestamps:
        return
    first, last = counts.first_ms, max(lifetime.largest_timestamp, counts.first_ms)
    earliest, latest = lifetime.unreadable
    known_until = max(last, now_ms) if earliest is None else max(last, earliest)
    lane.bar(first, known_until, _SURE)
    lane.bar(first, last, _HELD)
    if latest is None:
        size = min(5.0, 20 * lane.height)
        lane.axes.plot(day_of(known_until), lane.middle, marker=">", color=_SURE, markersize=size)
    elif latest > known_until:
        lane.bar(known_until, latest, _PERHAPS)


def codecs_plot(report: Report) -> str:
    """
    How many bytes each codec has, by topic.
    """
    topics = report.by_topic()
    figure, axes = new_figure(len(topics))
    used = [codec for codec in _CODECS if any(_bytes(facts, codec) for facts in topics.values())]
    for row, facts in enumerate(topics.values()):
        left = 0.0
        for codec in used:
            width = _bytes(facts, codec) / 2**20
            axes.barh(row, width, left=left, color=_CODECS[codec], height=_BAND)
            left += width
    _name_rows(axes, list(topics))
    axes.set_xlabel("MiB as stored")
    if used:
        axes.legend(handles=[Patch(color=_CODECS[codec], label=codec) for codec in used])
    return as_svg(figure)


def _bytes(partitions: Iterable[PartitionFacts], codec: str) -> int:
    return sum(facts.counts.codecs.get(codec, 0) for facts in partitions)


def fill_plot(report: Report) -> str:
    """
    How many batches have how many records, by topic.
    """
    figure, axes = new_figure(6)
    for topic, partitions in report.by_topic().items():
        fill: Counter[int] = Counter()
        for facts in partitions:
            fill.update(facts.counts.fill)
        if fill:
            powers = range(min(fill), max(fill) + 1)
            axes.plot(
                [2**power for power in powers],
                [fill[power] for power in powers],
                marker="o",
                label=topic,
            )
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.set_yscale("symlog")
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.set_ylim(bottom=0, top=2 * max(axes.dataLim.y1, 1))
    axes.set_xlabel("records in a batch, from this number up to its double")
    axes.set_ylabel("batches")
    if axes.lines:
        axes.legend()
    return as_svg(figure)


def keys_plot(report: Report) -> str:
    """
    What part of the records the most frequent keys have, partition by partition.
    """
    rows = [facts for facts in _largest(report) if facts.keys is not None and facts.keys.most]
    figure, axes = new_figure(len(rows))
    for row, facts in enumerate(rows):
        assert facts.keys is not None, "chosen above"
        left = 0.0
        for number, (_, count) in enumerate(facts.keys.most):
            share = count / facts.keys.records
            axes.barh(row, share, left=left, color=_HELD, alpha=1 - 0.17 * number, height=_BAND)
            left += share
    _name_rows(axes, [str(facts.partition) for facts in rows])
    axes.set_xlabel("part of the records, the most frequent key first")
    return as_svg(figure)


def new_figure(rows: int) -> tuple[Figure, Axes]:
    """
    A picture with room for so many rows.
    """
    with mpl.rc_context(_SETTINGS):
        figure = Figure(figsize=(9.5, 1.4 + 0.32 * max(rows, 2)), layout="constrained")
        axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _name_rows(axes: Axes, names: Sequence[str]) -> None:
    """
    From the top down.
    """
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(max(len(names), 1) - 0.4, -0.6)


def show_dates(axes: Axes) -> None:
    """
    What is drawn by ``day_of`` has dates below it, in UTC.
    """
    locator = mdates.AutoDateLocator(tz=UTC)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(mdates.ConciseDateFormatter(locator, tz=UTC))


def as_svg(figure: Figure) -> str:
    """
    The picture as an element of a page.
    """
    out = io.StringIO()
    with mpl.rc_context(_SETTINGS):
        figure.savefig(out, format="svg", metadata={"Date": None})
    text = out.getvalue()
    return text[text.index("<svg") :]


def day_of(ms: int) -> float:
    """
    A moment as matplotlib counts: in days. What is later than it can draw is drawn at the edge.
    """
    return float(mdates.date2num(_EPOCH + timedelta(milliseconds=min(ms, _LATEST_MS))))
