"""
A report as a page that needs nothing but itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Final

from barnabas.pipeline.jobs.report import plots, trends
from barnabas.pipeline.jobs.report.facts import PartitionFacts, Report
from barnabas.pipeline.jobs.report.figures import Snapshot
from barnabas.pipeline.jobs.report.text import because, gaps, key_text, limits, lives, order
from barnabas.storage.explain.units import duration, moment, rounded_size
from barnabas.storage.units import counted

_STYLE: Final = """
body { font: 15px/1.45 system-ui, sans-serif; color: #1a202c; margin: 2rem auto; max-width: 72rem;
  padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
table { border-collapse: collapse; width: 100%; font-size: 13px; }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid #e2e8f0;
  vertical-align: top; }
th { border-bottom-color: #a0aec0; } td.n { text-align: right; font-variant-numeric: tabular-nums; }
svg { max-width: 100%; height: auto; } p.note { color: #4a5568; }
details { margin: .5rem 0; } summary { cursor: pointer; }
"""

_NUMBERS: Final = frozenset("0123456789")


def as_page(report: Report, history: Sequence[Snapshot] = ()) -> str:
    """
    HTML, with style and plots in it.

    Args:
        history: the runs whose figures are compared, this one among them.
    """
    return "\n".join(
        (
            '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">',
            f"<title>Logs of {moment(report.now_ms)}</title><style>{_STYLE}</style></head><body>",
            *_body(report, history),
            "</body></html>\n",
        )
    )


def _body(report: Report, history: Sequence[Snapshot]) -> Iterator[str]:
    size = sum(facts.size for facts in report.partitions)
    records = sum(facts.counts.records for facts in report.partitions)
    yield "<h1>What is in the logs, and how long it stays</h1>"
    yield (
        f"<p>{moment(report.now_ms)}: {counted(len(report.partitions), 'partition')} with"
        f" {counted(records, 'record')} in {rounded_size(size)}.</p>"
    )
    yield "<h2>How long records stay</h2>"
    yield plots.retention_plot(report)
    yield _table(
        ("partition", "asked for", "life of a record"), map(_retention_row, report.partitions)
    )
    if history:
        yield from _trends(trends.trends_of(report, history))
    yield "<h2>What is in them</h2>"
    heads: Sequence[str] = (
        "partition",
        "segments",
        "size",
        "records",
        "per batch",
        "timestamps",
        "offsets",
    )
    yield _table(heads, map(_content_row, report.partitions))
    yield "<h2>Codecs</h2>"
    yield plots.codecs_plot(report)
    yield "<h2>Batch fill</h2>"
    yield plots.fill_plot(report)
    yield "<h2>Producers</h2>"
    heads = (
        "partition",
        "idempotent producers",
        "repeated records",
        "most by",
        "sequence gaps",
        "records of others",
    )
    yield _table(heads, map(_producers_row, report.partitions))
    if any(facts.keys is not None for facts in report.partitions):
        yield "<h2>Keys</h2>"
        yield plots.keys_plot(report)
        heads = ("partition", "different", "without", "most frequent", "in")
        yield _table(heads, map(_keys_row, report.partitions))
    yield "<h2>Segments</h2>"
    yield from map(_segments, report.partitions)


def _trends(found: Sequence[trends.Trend]) -> Iterator[str]:
    yield "<h2>Run by run</h2>"
    compared = [trend for trend in found if len(trend.known) > 1]
    if not compared:
        yield '<p class="note">This is the first run. The next one is compared with it.</p>'
        return
    yield trends.size_plot(compared)
    yield trends.age_plot(compared)
    if len(compared) > trends.LINES:
        yield f'<p class="note">The plots have the {trends.LINES} largest partitions.</p>'
    yield _table(trends.TABLE_HEADS, map(trends.table_row, compared))


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(text)}</th>" for text in heads)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(text: str) -> str:
    is_number = text[:1] in _NUMBERS and _NUMBERS.issuperset(text.replace(",", "").replace(".", ""))
    return f'<td class="n">{text}</td>' if is_number else f"<td>{escape(text)}</td>"


def _retention_row(facts: PartitionFacts) -> tuple[str, ...]:
    return str(facts.partition), limits(facts.config), lives(facts)


def _content_row(facts: PartitionFacts) -> tuple[str, ...]:
    counts = facts.counts
    return (
        str(facts.partition),
        f"{len(facts.segments):,}",
        rounded_size(facts.size),
        f"{counts.records:,}",
        f"{counts.records_per_batch:,.1f}",
        order(facts),
        gaps(counts),
    )


def _producers_row(facts: PartitionFacts) -> tuple[str, ...]:
    found = facts.producers
    if found is None:
        return str(facts.partition), "", "", "", "", ""
    return (
        str(facts.partition),
        f"{found.producers:,}",
        f"{found.repeated_records:,}",
        "" if found.worst_producer_id is None else f"{found.worst_producer_id}",
        f"{found.sequence_gaps:,}",
        f"{found.unprotected_records:,}",
    )


def _keys_row(facts: PartitionFacts) -> tuple[str, ...]:
    keys = facts.keys
    if keys is None:
        return str(facts.partition), "", "", "", ""
    most = key_text(keys.most[0][0]) if keys.most else ""
    share = f"{keys.top_share:.1%}" if keys.most else ""
    return str(facts.partition), f"{keys.distinct:,}", f"{keys.without_key:,}", most, share


def _segments(facts: PartitionFacts) -> str:
    heads = (
        "segment",
        "size",
        "records",
        "oldest",
        "readable at least",
        "at most",
        "what keeps it",
    )
    rows = []
    for segment in facts.segments:
        earliest, latest = segment.lifetime.unreadable
        counts = segment.counts
        first = None if counts is None else counts.first_ms
        rows.append(
            (
                f"{segment.base_offset}",
                rounded_size(segment.size),
                "" if counts is None else f"{counts.records:,}",
                _moment(first),
                _moment(earliest),
                _moment(latest),
                because(segment),
            )
        )
    note = f'<p class="note">{escape(facts.note)}</p>' if facts.note else ""
    delay = duration(facts.config.file_delete_delay_ms)
    return (
        f"<details><summary>{escape(str(facts.partition))}</summary>{note}{_table(heads, rows)}"
        f'<p class="note">Files are removed {delay} after that.</p></details>'
    )


def _moment(ms: int | None) -> str:
    return "" if ms is None else moment(ms)
