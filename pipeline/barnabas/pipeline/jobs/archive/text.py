"""
What a run is going to do, and what it has done, in sentences.
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.pipeline.jobs.archive.job import Archived
from barnabas.pipeline.jobs.archive.planning import ArchivePlan
from barnabas.storage.explain.units import duration, rounded_size
from barnabas.storage.units import counted


def explain_plans(
    plans: Sequence[ArchivePlan], to: str, where: str, missing_columns: Sequence[str] = ()
) -> str:
    """
    A line for all, and one for each partition.

    Args:
        missing_columns: those that the table gets first.
    """
    size = rounded_size(sum(plan.log_bytes for plan in plans))
    files = sum(len(plan.ranges) for plan in plans)
    lines = [
        f"Archive {size} of {counted(len(plans), 'partition')} in {to}, {where}: writes"
        f" {counted(files, 'file')} at most. The log directories are not changed."
    ]
    if missing_columns:
        columns = "columns" if len(missing_columns) > 1 else "column"
        lines.append(
            f"The table is of an older version: it gets the {columns} {', '.join(missing_columns)},"
            " in which its rows have nulls."
        )
    lines += map(_explain_plan, plans)
    return "".join(f"{line}\n" for line in lines)


def _explain_plan(plan: ArchivePlan) -> str:
    there = ""
    if plan.archived is not None:
        there = f"; {plan.archived.start} to {plan.archived.end - 1} are archived"
    rest = plan.log_end_offset - plan.offsets.end
    more = f"; {counted(rest, 'offset')} not closed or not committed yet" if rest > 0 else ""
    if not plan.offsets.count:
        return f"  {plan.topic_partition}: nothing{there}{more}"
    size, files = rounded_size(plan.log_bytes), counted(len(plan.ranges), "file")
    return (
        f"  {plan.topic_partition}: offsets {plan.offsets.start} to {plan.offsets.end - 1},"
        f" {counted(plan.segments, 'segment')}, {size}, as {files}{there}{more}"
    )


def explain_done(done: Archived, seconds: float) -> str:
    """
    One line.
    """
    took = duration(max(1, int(seconds * 1000)))
    removed = f" Removed {counted(done.removed, 'file')} of killed runs." if done.removed else ""
    return (
        f"Archived {counted(done.records, 'record')}: {rounded_size(done.log_bytes)} as"
        f" {counted(len(done.commits), 'file')} of {rounded_size(done.file_bytes)}, in {took}."
        f"{removed}"
    )
