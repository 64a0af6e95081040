"""
All sentences of a report, for both forms of output.
"""

from __future__ import annotations

from barnabas.storage.explain.report import PartitionReport, SegmentReport
from barnabas.storage.explain.wording.cleaning import (
    cleaning_sentences,
    horizon_sentence,
    part_sentence,
)
from barnabas.storage.explain.wording.endings import ending_sentence
from barnabas.storage.explain.wording.retention import (
    METADATA_GOES,
    METADATA_STAYS,
    keeping_sentences,
    leaving_sentences,
)


def cleaning_words(report: PartitionReport) -> list[str]:
    if report.cleaning is None:
        return []
    return cleaning_sentences(report.cleaning, report.opened.settings.config, report.now_ms)


def ending_words(report: PartitionReport, each: SegmentReport) -> str:
    return ending_sentence(report.ending(each), report.opened.settings.config)


def cleaner_words(report: PartitionReport, each: SegmentReport) -> list[str]:
    """
    The sentences about the cleaner and one segment; nothing if the log is not compacted.
    """
    if report.cleaning is None:
        return []
    part = report.cleaning.parts[each.segment.base_offset]
    sentences = [part_sentence(part, report.cleaning)]
    if each.horizons is not None:
        sentences.append(horizon_sentence(each.horizons))
    return sentences


def keeping_words(report: PartitionReport, each: SegmentReport) -> list[str]:
    if report.is_metadata:
        return [*METADATA_STAYS]
    return keeping_sentences(each.lifetime, report.opened.settings.config, report.now_ms)


def leaving_words(report: PartitionReport, each: SegmentReport) -> list[str]:
    if report.is_metadata:
        return [*METADATA_GOES]
    return leaving_sentences(each.lifetime, report.opened.settings.config, report.now_ms)
