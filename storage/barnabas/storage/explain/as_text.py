"""
A report as text.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from barnabas.storage.explain.report import PartitionReport, SegmentReport
from barnabas.storage.explain.units import moment, size
from barnabas.storage.explain.wording.cleaning import cleaner_sentences, cleaning_sentences
from barnabas.storage.explain.wording.endings import ending_sentence
from barnabas.storage.explain.wording.forecast import forecast_parts
from barnabas.storage.explain.wording.lookup import offset_sentences, time_sentences
from barnabas.storage.explain.wording.partition import partition_sentences, setting_rows
from barnabas.storage.explain.wording.record import record_words
from barnabas.storage.explain.wording.retention import keeping_sentences, leaving_sentences
from barnabas.storage.units import counted

WIDTH: Final = 96
SHOWN_AT_EACH_END: Final = 3
"""So many of the oldest and of the newest segments are printed, unless ``--all`` is given."""

_LABEL: Final = 9
_PROVISO: Final = "These times hold for a broker that runs from now on with these settings."


def as_text(report: PartitionReport, *, all_segments: bool = False) -> str:
    """
    The answer, with everything that explains it.
    """
    lines = list(_heading(report))
    if report.groups is not None:
        lines += _groups(report)
    elif report.chosen is None:
        if report.cleaning is not None:
            lines += ["", *_labelled("Cleaner", cleaning_sentences(report))]
        for part in _shown(report.segments, all_segments):
            lines += ["", part] if isinstance(part, str) else ["", *_segment(report, part)]
    else:
        lines += _found(report)
        lines += ["", *_segment(report, report.chosen)]
    lines += _settings(report)
    return "\n".join(lines) + "\n"


def summary_text(report: PartitionReport) -> str:
    """
    A summary of a partition: its state, and the segment that is deleted next.
    """
    lines = list(_heading(report))
    if report.groups is not None:
        return "\n".join([*lines, *_groups(report)]) + "\n"
    oldest = report.segments[0]
    if oldest.segment.size == 0 and len(report.segments) == 1:
        return "\n".join(lines) + "\n"
    lines += _labelled("Oldest", [_range_of(oldest)])
    lines += _lifetime(report, oldest)
    lines += _labelled("Cleaner", cleaning_sentences(report))
    return "\n".join(lines) + "\n"


def settings_text(report: PartitionReport) -> str:
    """
    The settings of the logs of a topic.
    """
    return "\n".join(_settings(report)[1:]) + "\n"


def _heading(report: PartitionReport) -> Iterator[str]:
    yield f"{report.opened.partition}"
    yield from _wrapped(" ".join(partition_sentences(report.opened)), "  ")


def _groups(report: PartitionReport) -> Iterator[str]:
    if not report.groups:
        yield from ("", *_wrapped("No group has committed an offset of it.", "  "))
    for each in report.groups or ():
        yield from ("", f"{'Share group' if each.is_share else 'Group'} {each.group_id}")
        place, pace, outcome = forecast_parts(each.forecast)
        yield from _labelled("At", place)
        yield from _labelled("Reads", pace)
        yield from _labelled("Loses", outcome)


def _settings(report: PartitionReport) -> list[str]:
    rows = list(setting_rows(report.opened, report.times))
    names = max(len(name) for name, _, _ in rows)
    values = max(len(value) for _, value, _ in rows)
    lines = ["", f"Settings at {moment(report.now_ms)}"]
    lines += [
        f"  {name:<{names}}  {value:<{values}}  {source}".rstrip() for name, value, source in rows
    ]
    settings = report.opened.settings
    for sentence in (*settings.supposed_in_vain, settings.note):
        lines += _wrapped(sentence, "  ")
    lines += ["", *_wrapped(_PROVISO, "")]
    return lines


def _shown(segments: Sequence[SegmentReport], all_segments: bool) -> Iterable[SegmentReport | str]:
    hidden = len(segments) - 2 * SHOWN_AT_EACH_END
    if all_segments or hidden <= 1:
        return segments
    first, last = segments[:SHOWN_AT_EACH_END], segments[-SHOWN_AT_EACH_END:]
    total = sum(each.segment.size for each in segments[SHOWN_AT_EACH_END:-SHOWN_AT_EACH_END])
    gap = f"... {counted(hidden, 'more segment')}, {size(total)}; --all shows them"
    return [*first, gap, *last]


def _segment(report: PartitionReport, each: SegmentReport) -> Iterator[str]:
    yield f"Segment {each.segment.base_offset:,}: {_range_of(each)}"
    ending = report.ending(each)
    label = "Ends" if ending.room else "Ended"
    yield from _labelled(label, [ending_sentence(ending, report.config)])
    yield from _labelled("Cleaner", cleaner_sentences(report, each))
    yield from _lifetime(report, each)


def _lifetime(report: PartitionReport, each: SegmentReport) -> Iterator[str]:
    yield from _labelled("Kept", keeping_sentences(report, each))
    yield from _labelled("Deleted", leaving_sentences(report, each))


def _range_of(each: SegmentReport) -> str:
    base, last = each.segment.base_offset, each.lifetime.end_offset - 1
    if each.segment.size == 0:
        return "empty"
    offsets = f"offset {base:,}" if base == last else f"offsets {base:,} to {last:,}"
    return f"{offsets}, {size(each.segment.size)}"


def _found(report: PartitionReport) -> Iterator[str]:
    if report.time_path is not None:
        yield from ("", f"Time {moment(report.time_path.timestamp)}")
        yield from _labelled("Found", time_sentences(report.time_path))
    path, record = report.offset_path, report.record
    if path is not None and record is not None:
        yield from ("", f"Offset {path.offset:,}")
        yield from _labelled("Found", offset_sentences(path, record))
        yield from _labelled("Is", record_words(report))


def _labelled(label: str, sentences: Iterable[str]) -> list[str]:
    """
    Lines with sentences behind their label; nothing without sentences.
    """
    text = " ".join(sentence for sentence in sentences if sentence)
    return _wrapped(text, "  " + label.ljust(_LABEL))


def _wrapped(text: str, first: str) -> list[str]:
    """
    Lines of *text*, the first one behind *first* and the others below.
    """
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=first,
        subsequent_indent=" " * len(first),
        break_on_hyphens=False,
        break_long_words=False,
    )
