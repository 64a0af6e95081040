"""
``barnabas spark compact``.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from barnabas.pipeline.jobs.archive.arguments import add_archive, existing_archive_of
from barnabas.pipeline.jobs.common import (
    add_logs,
    add_source_options,
    add_spark,
    assigned_logs,
    ended,
    named_values,
    session_of,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from barnabas.pipeline.jobs.archive.table import ArchiveTable
    from barnabas.pipeline.jobs.compact.planning import CompactionPlan
    from barnabas.pipeline.jobs.progress import ProgressBar
    from barnabas.storage.clock import Clock
    from barnabas.storage.explain.known import ReadCluster


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """
    What may be asked.
    """
    parser.description = (
        "Write the latest record of each key of topics, as their cleaner would leave them, to"
        " Parquet files. What was written before of a topic is replaced when all of it is done. It"
        " may be killed at any instant and run again. What is read is not changed, whether a broker"
        " runs on it or not."
    )
    add_logs(parser)
    parser.add_argument(
        "--from",
        dest="archive",
        metavar="ARCHIVE",
        help="read what barnabas spark archive has written, and no logs; also a URL, and with"
        " --catalog a NAMESPACE.TABLE",
    )
    add_archive(parser)
    parser.add_argument("--to", required=True, metavar="DIR", help="where files go")
    parser.add_argument(
        "--keep-tombstones",
        action="store_true",
        help="keep the latest record of a key also if its value is null",
    )
    add_source_options(parser, "readUpTo=logEnd")
    parser.add_argument("--dry-run", action="store_true", help="only say what would be compacted")
    add_spark(parser)


def run(options: argparse.Namespace, read_cluster: ReadCluster) -> int:
    """
    Say what is going to be compacted, and unless that is all, compact it; the exit status is 0, or
    1 if it cannot be compacted, or 2 if the question makes no sense.
    """
    # --help, and an environment without Spark, should not wait for the import of it.
    from barnabas.storage.clock import SystemClock  # noqa: PLC0415  # see above

    return ended(lambda: _Command(options, read_cluster, SystemClock()).run())


class _Command:
    def __init__(
        self, options: argparse.Namespace, read_cluster: ReadCluster, clock: Clock
    ) -> None:
        from barnabas.pipeline.logs.filesystems import local_path  # noqa: PLC0415  # see run

        self._options = options
        self._clock = clock
        self._to = local_path(options.to)
        self._source_options = named_values(options.source_options)
        if options.archive is None:
            self._path, assigned = assigned_logs(options, read_cluster, clock)
            self._source_options["assign"] = assigned
        else:
            self._path = str(options.archive)
            if options.targets:
                self._source_options["assign"] = self._in_archive()

    def _in_archive(self) -> str:
        """
        The partitions of the targets, as the source wants them.

        Raises:
            ArchiveError: the archive is not whole.
            UnknownTopic: it has none of a target.
        """
        from barnabas.pipeline.errors import UnknownTopic  # noqa: PLC0415  # see run

        archive = self._archive()
        there = [each for each in archive.partitions if archive.archived(each) is not None]
        assigned: dict[str, list[int]] = {}
        for target in self._options.targets:
            found = [each for each in there if target in (each.topic, str(each))]
            if not found:
                names = ", ".join(sorted({each.topic for each in there})) or "no topic"
                raise UnknownTopic(f"{archive.name} has no {target}. There is {names}.")
            for topic, number in found:
                assigned.setdefault(topic, []).append(number)
        return json.dumps(assigned)

    def _archive(self, spark: SparkSession | None = None) -> ArchiveTable:
        return existing_archive_of(self._options, self._options.archive, spark)

    def run(self) -> None:

        if self._options.dry_run:
            self._dry_run()
            return
        with session_of(self._options) as spark:
            self._compact(spark)

    def _dry_run(self) -> None:
        from barnabas.pipeline.jobs.compact.planning import (  # noqa: PLC0415  # see run
            compact_options,
            plan_archive,
            plan_logs,
        )
        from barnabas.pipeline.jobs.compact.snapshots import Snapshots  # noqa: PLC0415  # see run

        there = Snapshots(self._to)
        archive = None if self._options.archive is None else self._archive()
        options = compact_options(
            self._path, self._source_options, from_archive=archive is not None
        )
        keeps = self._options.keep_tombstones
        self._explain(
            plan_logs(there, options, keep_tombstones=keeps)
            if archive is None
            else plan_archive(there, archive, options, keep_tombstones=keeps)
        )
        for file in there.leftovers():
            print(f"{file} is of no use any more, and goes.", file=sys.stderr)

    def _explain(self, plans: Sequence[CompactionPlan]) -> None:
        from barnabas.pipeline.jobs.compact.text import explain_plans  # noqa: PLC0415  # see run

        where = f"on {self._options.master}"
        print(explain_plans(plans, self._to, where), end="", file=sys.stderr)

    def _compact(self, spark: SparkSession) -> None:
        from barnabas.pipeline.jobs.compact.job import compact  # noqa: PLC0415  # see run
        from barnabas.pipeline.jobs.compact.text import explain_done  # noqa: PLC0415  # see run
        from barnabas.pipeline.jobs.progress import ProgressBar  # noqa: PLC0415  # see run

        bars: list[ProgressBar] = []

        def started(plans: Sequence[CompactionPlan]) -> None:
            self._explain(plans)
            total = sum(plan.source.size for plan in plans if plan.done is None)
            bars.append(ProgressBar("compacted", total, sys.stderr, self._clock))

        since = self._clock.monotonic()
        try:
            done = compact(
                spark,
                self._path if self._options.archive is None else self._archive(spark),
                self._to,
                self._source_options,
                keep_tombstones=self._options.keep_tombstones,
                started=started,
                done=lambda partition: bars[0].advance(partition.source_bytes),
            )
        finally:
            for bar in bars:
                bar.close()
        print(explain_done(done, self._clock.monotonic() - since))
