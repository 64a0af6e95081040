"""
What a run is going to do, and what it has done, in sentences.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from barnabas.pipeline.jobs.compact.job import Compacted
from barnabas.pipeline.jobs.compact.planning import CompactionPlan
from barnabas.storage.explain.units import duration, rounded_size
from barnabas.storage.units import counted


def explain_plans(plans: Sequence[CompactionPlan], to: Path, where: str) -> str:
    """
    A line for all, and one for each partition.
    """
    size = rounded_size(sum(plan.source.size for plan in plans if plan.done is None))
    tombstones = "stay" if any(plan.keeps_tombstones for plan in plans) else "do not stay"
    lines = [
        f"Compact {size} of {counted(len(plans), 'partition')} in {to}, {where}: reads them twice,"
        " and writes the latest record of each key. Records without key do not stay, and keys whose"
        f" latest value is null {tombstones}. What is read is not changed."
    ]
    lines += map(_explain_plan, plans)
    return "".join(f"{line}\n" for line in lines)


def _explain_plan(plan: CompactionPlan) -> str:
    start, end = plan.offsets.start, plan.offsets.end
    if start == end:
        return f"  {plan.topic_partition}: nothing"
    what = f"offsets {start} to {end - 1}, {rounded_size(plan.source.size)}"
    if plan.done is None:
        return f"  {plan.topic_partition}: {what}"
    return f"  {plan.topic_partition}: nothing; {what}, are compacted"


def explain_done(done: Compacted, seconds: float) -> str:
    """
    One line, or two if some records had no key.
    """
    took = duration(max(1, int(seconds * 1000)))
    read = sum(each.records_read for each in done.partitions)
    kept = sum(each.records for each in done.partitions)
    size = rounded_size(sum(each.file_bytes for each in done.partitions))
    text = f"Compacted {counted(read, 'record')} to {kept:,}, {size}, in {took}."
    if done.removed:
        text += f" Removed {counted(done.removed, 'file')} that nothing names any more."
    without_key = sum(each.without_key for each in done.partitions)
    if without_key:
        text += f"\n{counted(without_key, 'record')} had no key and did not stay."
    return text
