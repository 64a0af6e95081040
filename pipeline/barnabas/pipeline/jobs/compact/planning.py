"""
What there is to compact: of each partition all that is committed by now.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

from barnabas.pipeline.decoding.decode import OffsetRange
from barnabas.pipeline.errors import InvalidOption, UnknownTopic
from barnabas.pipeline.jobs.archive.table import ArchivedPartition, ArchiveTable
from barnabas.pipeline.jobs.compact.snapshots import CompactedPartition, CompactError, Snapshots
from barnabas.pipeline.jobs.compact.sources import ArchiveSource, CompactionSource, LogSource
from barnabas.pipeline.option_parser import parse_options
from barnabas.pipeline.options import IsolationLevel, ReadOptions
from barnabas.pipeline.reading.plan import Work, open_logs, ranges
from barnabas.storage.topic_partition import TopicPartition

_WHICH: Final = ("subscribe", "subscribePattern", "assign")
_HOW: Final = ("readUpTo", "chunkBytes", "maxBatchBytes")
"""Of logs. That only what is committed counts is not a choice."""


@dataclass(frozen=True)
class CompactionPlan:
    """
    What is to be compacted of one partition.
    """

    topic_partition: TopicPartition
    offsets: OffsetRange
    source: CompactionSource
    keeps_tombstones: bool
    done: CompactedPartition | None = None
    """What is there already, if it is just this."""

    def is_what_became(self, made: CompactedPartition | None) -> bool:
        """
        Whether *made* is what would be made again.
        """
        wanted = (*self.offsets_and_bytes, self.source.path, self.keeps_tombstones)
        return made is not None and wanted == (
            made.start_offset,
            made.end_offset,
            made.source_bytes,
            made.source,
            made.keeps_tombstones,
        )

    @property
    def offsets_and_bytes(self) -> tuple[int, int, int]:
        return self.offsets.start, self.offsets.end, self.source.size


def compact_options(
    path: str, options: Mapping[str, str], *, from_archive: bool = False
) -> ReadOptions:
    """
    Which topics are meant, and how their logs are read.

    Raises:
        InvalidOption: there is no such option, or it is of no use here.
    """
    names = _WHICH if from_archive else _WHICH + _HOW
    known = {name.lower() for name in names}
    for name in options:
        if name.lower() not in known:
            raise InvalidOption(f"Compacting takes {', '.join(names)}, and not {name}.")
    committed = IsolationLevel.READ_COMMITTED
    return replace(parse_options({**options, "path": path}), isolation_level=committed)


def plan_logs(
    snapshots: Snapshots, options: ReadOptions, *, keep_tombstones: bool
) -> list[CompactionPlan]:
    """
    What is to be compacted of logs, by partition. Nothing is changed.

    Raises:
        CompactError: what was compacted before is not whole.
        FileNotFoundError, UnknownTopic: as ``open_logs``.
    """
    plans = []
    for log in open_logs(options):
        end = log.end_offset(options.read_up_to, options.isolation_level)
        offsets = OffsetRange(log.start_offset, end)
        work = Work(tuple(ranges(log, offsets, options)))
        source = LogSource(str(log.directory.path), work, options)
        plans.append(CompactionPlan(log.topic_partition, offsets, source, keep_tombstones))
    return _with_done(snapshots, plans)


def plan_archive(
    snapshots: Snapshots, archive: ArchiveTable, options: ReadOptions, *, keep_tombstones: bool
) -> list[CompactionPlan]:
    """
    The same of an archive.

    Raises:
        ArchiveError: the archive is not whole.
        CompactError: it has records that were not committed; or as above.
        UnknownTopic: it has none of the topics.
    """
    plans = []
    for partition, archived in _archived(archive, options).items():
        if archived.isolation_level != IsolationLevel.READ_COMMITTED.value:
            level = archived.isolation_level or "unknown"
            raise CompactError(
                f"{archived.named_by}: {partition} was archived with isolationLevel={level}, and"
                " nobody can tell which records were aborted."
            )
        source = ArchiveSource(archive.name, archive.store, tuple(archive.files_of(partition)))
        plans.append(CompactionPlan(partition, archived.offsets, source, keep_tombstones))
    return _with_done(snapshots, plans)


def _archived(
    archive: ArchiveTable, options: ReadOptions
) -> dict[TopicPartition, ArchivedPartition]:
    topics = options.topics
    there = {each: archive.archived(each) for each in archive.partitions}
    found = {each: archived for each, archived in there.items() if archived is not None}
    chosen = {each: archived for each, archived in found.items() if topics.has(each)}
    missing = set(topics.names or ()) - {each.topic for each in chosen}
    missing |= {str(each) for each in set(topics.partitions or ()) - set(chosen)}
    if missing or not chosen:
        names = ", ".join(sorted({each.topic for each in found})) or "no topic"
        what = ", ".join(sorted(missing)) or "such topic"
        raise UnknownTopic(f"{archive.name} has no {what}. There is {names}.")
    return chosen


def _with_done(snapshots: Snapshots, plans: list[CompactionPlan]) -> list[CompactionPlan]:
    published = {each.topic_partition: each for each in chain(*snapshots.topics.values())}
    done = []
    for plan in plans:
        candidates = (snapshots.done.get(plan.topic_partition), published.get(plan.topic_partition))
        there = next((made for made in candidates if plan.is_what_became(made)), None)
        done.append(replace(plan, done=there))
    return done
