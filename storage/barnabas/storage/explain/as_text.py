"""
A report for people to read.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from barnabas.storage.explain.report import PartitionReport, SegmentReport
from barnabas.storage.explain.units import counted, moment, size
from barnabas.storage.explain.wording.cleaning import (
    cleaning_sentences,
    horizon_sentence,
    part_sentence,
)
from barnabas.storage.explain.wording.endings import ending_sentence
from barnabas.storage.explain.wording.finding import (
    offset_sentences,
    time_sentences,
)
from barnabas.storage.explain.wording.leaving import (
    METADATA_GOES,
    METADATA_STAYS,
    keeping_sentences,
    leaving_sentences,
)
from barnabas.storage.explain.wording.partition import partition_sentences, setting_rows
from barnabas.storage.explain.wording.record import record_words

WIDTH: Final = 96
SHOWN_AT_EACH_END: Final = 3
"""Of more segments only so many of the oldest and the newest are told of, unless all are wanted."""

_LABEL: Final = 9
_PROVISO: Final = (
    "When something goes is said for a broker that runs from now on, with these settings."
)


def as_text(report: PartitionReport, *, all_segments: bool = False) -> str:
    """
    What was asked for, with all that explains it.
    """
    lines = list(_heading(report))
    if report.chosen is None:
        lines += _cleaning(report)
        for part in _shown(report.segments, all_segments):
            lines += ["", part] if isinstance(part, str) else ["", *_segment(report, part)]
    else:
        lines += _found(report)
        lines += ["", *_segment(report, report.chosen)]
    lines += _settings(report)
    return "\n".join(lines) + "\n"


def summary_text(report: PartitionReport) -> str:
    """
    A partition in short: what there is, and which segment goes next.
    """
    lines = list(_heading(report))
    oldest = report.segments[0]
    if oldest.segment.size == 0 and len(report.segments) == 1:
        return "\n".join(lines) + "\n"
    lines += _labelled("Oldest", [_range_of(oldest)])
    lines += _sentences_of_departure(report, oldest)
    if report.cleaning is not None:
        lines += _cleaning(report)[1:]
    return "\n".join(lines) + "\n"


def settings_text(report: PartitionReport) -> str:
    """
    What the logs of a topic go by.
    """
    return "\n".join(_settings(report)[1:]) + "\n"


def _heading(report: PartitionReport) -> Iterator[str]:
    yield from _labelled(f"{report.looked_at.partition}", partition_sentences(report.looked_at), 0)


def _settings(report: PartitionReport) -> list[str]:
    rows = list(setting_rows(report.looked_at, report.times))
    names = max(len(name) for name, _, _ in rows)
    values = max(len(value) for _, value, _ in rows)
    lines = ["", f"Settings at {moment(report.now_ms)}"]
    lines += [
        f"  {name:<{names}}  {value:<{values}}  {source}".rstrip() for name, value, source in rows
    ]
    settings = report.looked_at.settings
    for sentence in (*settings.supposed_in_vain, settings.note):
        lines += _wrapped(sentence, 2)
    lines += ["", *_wrapped(_PROVISO, 0)]
    return lines


def _cleaning(report: PartitionReport) -> list[str]:
    if report.cleaning is None:
        return []
    config = report.looked_at.settings.config
    return ["", *_labelled("Cleaner", cleaning_sentences(report.cleaning, config, report.now_ms))]


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
    config = report.looked_at.settings.config
    yield from _labelled(
        "Ends" if each.ending.room else "Ended", [ending_sentence(each.ending, config)]
    )
    if report.cleaning is not None:
        sentences = [
            part_sentence(report.cleaning.parts[each.segment.base_offset], report.cleaning)
        ]
        if each.horizons is not None:
            sentences.append(horizon_sentence(each.horizons))
        yield from _labelled("Cleaner", sentences)
    yield from _sentences_of_departure(report, each)


def _sentences_of_departure(report: PartitionReport, each: SegmentReport) -> Iterator[str]:
    config = report.looked_at.settings.config
    stays: Iterable[str] = METADATA_STAYS
    goes: Iterable[str] = METADATA_GOES
    if not report.is_metadata:
        stays = keeping_sentences(each.departure, config, report.now_ms)
        goes = leaving_sentences(each.departure, config, report.now_ms)
    yield from _labelled("Stays", stays)
    yield from _labelled("Goes", goes)


def _range_of(each: SegmentReport) -> str:
    base, last = each.segment.base_offset, each.end_offset - 1
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


def _labelled(label: str, sentences: Iterable[str], indent: int = 2) -> list[str]:
    """
    Sentences behind their label, in lines.
    """
    text = " ".join(sentence for sentence in sentences if sentence)
    if indent == 0:
        return [label, *_wrapped(text, 2)]
    first = " " * indent + label.ljust(_LABEL)
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=first,
        subsequent_indent=" " * len(first),
        break_on_hyphens=False,
        break_long_words=False,
    )


def _wrapped(text: str, indent: int) -> list[str]:
    margin = " " * indent
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=margin,
        subsequent_indent=margin,
        break_on_hyphens=False,
        break_long_words=False,
    )
