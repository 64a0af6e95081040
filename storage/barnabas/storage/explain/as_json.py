"""
A report as JSON: one object for each partition, a line each.

Times are in ms since 1970, sizes in bytes. The names of rules and causes are those of the
enumerations in the code, in lower case. The sentences are beside the facts, as ``words``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any, Final

from barnabas.protocol.structs import is_struct, items
from barnabas.storage.explain.cleaning import Cleaning
from barnabas.storage.explain.records import RecordAt
from barnabas.storage.explain.report import PartitionReport, SegmentReport
from barnabas.storage.explain.wording.cleaning import cleaner_sentences, cleaning_sentences
from barnabas.storage.explain.wording.endings import ending_sentence
from barnabas.storage.explain.wording.forecast import forecast_json
from barnabas.storage.explain.wording.lookup import offset_sentences, time_sentences
from barnabas.storage.explain.wording.partition import partition_sentences
from barnabas.storage.explain.wording.record import record_words
from barnabas.storage.explain.wording.retention import keeping_sentences, leaving_sentences
from barnabas.storage.segment.segment import LogSegment
from barnabas.storage.units import LONG_MAX

Json = dict[str, Any]


def as_json(reports: Iterable[PartitionReport]) -> str:
    """
    The objects for *reports*.
    """
    return "".join(json.dumps(partition_facts(report)) + "\n" for report in reports)


def partition_facts(report: PartitionReport, *, with_keys: bool = True) -> Json:
    """
    The object for a report.

    Args:
        with_keys: whether the key of the record that is asked for is part of it.
    """
    chosen = report.segments if report.chosen is None else (report.chosen,)
    found = log_facts(report)
    if report.time_path is not None:
        found["time"] = _plain(report.time_path) | {"words": time_sentences(report.time_path)}
    if report.offset_path is not None and report.record is not None:
        found["offset"] = _plain(report.offset_path) | {
            "words": offset_sentences(report.offset_path, report.record)
        }
        found["record"] = _record(report.record, with_keys) | {
            "words": record_words(report, with_keys=with_keys)
        }
    if report.groups is not None:
        found["groups"] = [
            {"group": each.group_id, "is_share": each.is_share, **forecast_json(each.forecast)}
            for each in report.groups
        ]
    found["segments"] = [segment_facts(report, each) for each in chosen]
    return found


def log_facts(report: PartitionReport) -> Json:
    """
    The part of that object about the whole log.
    """
    opened = report.opened
    log = opened.log
    found: Json = {
        "topic": opened.partition.topic,
        "partition": opened.partition.partition,
        "path": str(opened.path),
        "condition": _plain(opened.condition),
        "was_recovered": opened.was_recovered,
        "now_ms": report.now_ms,
        "log_start_offset": log.log_start_offset,
        "last_stable_offset": log.last_stable_offset,
        "high_watermark": log.high_watermark,
        "log_end_offset": log.log_end_offset,
        "size": log.size,
        "waiting_files": dict(opened.waiting_files),
        "settings_note": opened.settings.note,
        "settings": {
            setting.name: {"value": setting.value, "source": setting.source}
            for setting in opened.settings.settings.values()
        },
        "supposed_in_vain": list(opened.settings.supposed_in_vain),
        "broker": _plain(report.times),
        "words": partition_sentences(opened),
    }
    if report.cleaning is not None:
        found["cleaning"] = _cleaning(report, report.cleaning)
    return found


def segment_facts(report: PartitionReport, each: SegmentReport) -> Json:
    """
    The object for one segment of a report.
    """
    segment, ending = each.segment, report.ending(each)
    words: Json = {
        "ended": ending_sentence(ending, report.config),
        "stays": keeping_sentences(report, each),
        "goes": leaving_sentences(report, each),
    }
    found: Json = {
        "base_offset": segment.base_offset,
        "end_offset": each.lifetime.end_offset,
        "file": segment.log.path.name,
        "size": segment.size,
        "first_batch_timestamp": unless_never(each.first_batch_timestamp),
        "ending": _plain(ending) | {"certainty": _plain(ending.certainty)},
        "departure": _plain(each.lifetime),
        "words": words,
    }
    if report.cleaning is not None:
        found["part"] = _plain(report.cleaning.parts[segment.base_offset])
        words["cleaner"] = cleaner_sentences(report, each)
    if each.horizons is not None:
        found["horizons"] = _plain(each.horizons)
    return found


def unless_never(ms: int) -> int | None:
    """
    A time in ms; None for that of a batch which is not there.
    """
    return None if ms == LONG_MAX else ms


def _cleaning(report: PartitionReport, cleaning: Cleaning) -> Json:
    plan = cleaning.plan
    return {
        "first_dirty": _plain(plan.first_dirty),
        "bounds": _plain(list(plan.bounds)),
        "uncleanable_offset": plan.uncleanable_offset,
        "clean_bytes": plan.clean_bytes,
        "cleanable_bytes": plan.cleanable_bytes,
        "ratio": plan.ratio,
        "min_ratio": plan.min_ratio,
        "delay": _plain(plan.delay),
        "verdict": _plain(plan.verdict),
        "due_ms": cleaning.due_ms,
        "words": cleaning_sentences(report),
    }


def _record(found: RecordAt, with_keys: bool) -> Json:
    batch, record = found.batch, found.record
    return {
        "batch": {
            "base_offset": batch.base_offset,
            "last_offset": batch.last_offset,
            "size": batch.size,
            "records": batch.record_count,
            "max_timestamp": batch.max_timestamp,
            "leader_epoch": batch.partition_leader_epoch,
            "codec": batch.codec,
            "producer_id": batch.producer_id,
            "producer_epoch": batch.producer_epoch,
            "base_sequence": batch.base_sequence,
            "is_transactional": batch.is_transactional,
            "is_control": batch.is_control,
            "delete_horizon_ms": batch.delete_horizon_ms,
        },
        "record": None
        if record is None
        else {
            "offset": record.offset,
            "timestamp": record.timestamp,
            "key": _bytes(record.key) if with_keys else None,
            "value_size": None if record.value is None else len(record.value),
            "headers": found.header_count,
        },
        "flaw": found.flaw,
        "control_type": found.control_type,
        "is_tombstone": found.is_tombstone,
        "is_aborted": found.is_aborted,
        "is_undecided": found.is_undecided,
        "later_values": _plain(found.later),
    }


def _bytes(data: bytes | None) -> str | None:
    return None if data is None else bytes(data).decode(errors="backslashreplace")


def _plain(value: Any) -> Any:
    """
    Facts as JSON: a segment becomes its base offset, a member of an enumeration its name.
    """
    for kind, plain in _PLAIN:
        if isinstance(value, kind):
            return plain(value)
    if is_struct(value):
        return {name: _plain(each) for name, each in items(value)}
    return value


def _plain_tuple(value: Any) -> Any:
    if hasattr(value, "_asdict"):
        return {name: _plain(each) for name, each in value._asdict().items()}
    return [_plain(each) for each in value]


_PLAIN: Final[tuple[tuple[type, Callable[[Any], Any]], ...]] = (
    (LogSegment, lambda segment: segment.base_offset),
    (Enum, lambda member: member.name.lower()),
    (tuple, _plain_tuple),
    (list, _plain_tuple),
)
