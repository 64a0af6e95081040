"""
``barnabas spark archive``.
"""

from __future__ import annotations

import argparse
import sys
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from barnabas.pipeline.jobs.archive.arguments import add_archive, archive_of
from barnabas.pipeline.jobs.common import (
    add_logs,
    add_source_options,
    add_spark,
    assigned_logs,
    ended,
    named_values,
    session_of,
    size_of,
)
from barnabas.storage.units import counted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from barnabas.pipeline.jobs.archive.job import Archived
    from barnabas.pipeline.jobs.archive.planning import ArchivePlan
    from barnabas.pipeline.jobs.archive.table import ArchiveTable
    from barnabas.pipeline.jobs.progress import ProgressBar
    from barnabas.storage.clock import Clock
    from barnabas.storage.explain.known import ReadCluster


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """
    What may be asked.
    """
    parser.description = (
        "Append closed segments to an archive, each record exactly once. It may be"
        " killed at any instant and run again. The log directories are only read, whether a broker"
        " runs on them or not."
    )
    add_logs(parser)
    parser.add_argument(
        "--to",
        required=True,
        metavar="DIR",
        help="the archive, also a URL; with --format iceberg a NAMESPACE.TABLE",
    )
    add_archive(parser, may_be_new=True)
    add_source_options(parser, "isolationLevel=read_uncommitted")
    parser.add_argument(
        "--file-bytes", metavar="SIZE", help="of the log, that go into one file, about; such as 64m"
    )
    parser.add_argument(
        "--allow-gaps",
        action="store_true",
        help="offsets may be missing between segments, as in a copy of a compacted log",
    )
    parser.add_argument(
        "--every", type=float, metavar="SECONDS", help="go on, with so long a pause between runs"
    )
    parser.add_argument(
        "--merge-below",
        metavar="SIZE",
        help="then merge files of a Delta or Iceberg table that are smaller, such as 64m",
    )
    parser.add_argument("--dry-run", action="store_true", help="only say what would be archived")
    add_spark(parser)


def run(options: argparse.Namespace, read_cluster: ReadCluster) -> int:
    """
    Say what is going to be archived, and unless that is all, archive it; the exit status is 0, or 1
    if it cannot be archived, or 2 if the question makes no sense.
    """
    # --help, and an environment without Spark, should not wait for the import of it.
    from barnabas.storage.clock import SystemClock  # noqa: PLC0415  # see above

    return ended(lambda: _Command(options, read_cluster, SystemClock()).run())


class _Command:
    def __init__(
        self, options: argparse.Namespace, read_cluster: ReadCluster, clock: Clock
    ) -> None:
        from barnabas.pipeline.errors import InvalidOption  # noqa: PLC0415  # see run
        from barnabas.pipeline.jobs.archive.planning import BYTES_PER_FILE  # noqa: PLC0415  # see run

        self._options = options
        self._read_cluster = read_cluster
        self._clock = clock
        self._bytes_per_file = size_of("--file-bytes", options.file_bytes, BYTES_PER_FILE)
        self._merge_below = size_of("--merge-below", options.merge_below, 0)
        if self._merge_below and options.format == "parquet":
            raise InvalidOption("--merge-below is for --format delta and iceberg.")
        self._source_options = named_values(options.source_options)

    def _logs(self, *, without_gone: bool = False) -> tuple[str, dict[str, str]]:
        """
        The log directories, and the options for the topics and partitions that there are now.
        """
        path, assigned = assigned_logs(
            self._options, self._read_cluster, self._clock, without_gone=without_gone
        )
        return path, {**self._source_options, "assign": assigned}

    def _table(self, spark: SparkSession | None = None) -> ArchiveTable:
        """
        The archive, as it is now.
        """
        return archive_of(self._options, self._options.to, spark)

    def run(self) -> None:

        if self._options.dry_run:
            self._dry_run()
            return
        # What makes no sense is said before Spark starts.
        self._table()
        self._logs()
        with session_of(self._options) as spark:
            self._archive(spark)
            if self._options.every is not None:
                never = threading.Event()
                while not self._clock.wait(never, self._options.every):
                    self._archive_again(spark)

    def _dry_run(self) -> None:
        from barnabas.pipeline.jobs.archive.planning import (  # noqa: PLC0415  # see run
            archive_options,
            plan_archive,
        )

        there = self._table()
        read_options = archive_options(*self._logs(), self._bytes_per_file)
        plans = plan_archive(there, read_options, allow_gaps=self._options.allow_gaps)
        self._explain(plans, there)
        for file in there.leftovers():
            print(f"{file} was left by a run that was killed, and goes.", file=sys.stderr)

    def _explain(self, plans: Sequence[ArchivePlan], to: ArchiveTable) -> None:
        from barnabas.pipeline.jobs.archive.text import explain_plans  # noqa: PLC0415  # see run

        where = f"on {self._options.master}"
        text = explain_plans(plans, to.name, where, to.missing_columns)
        print(text, end="", file=sys.stderr)

    def _archive_again(self, spark: SparkSession) -> None:
        """
        Topics and partitions that were deleted since are no reason to stop.
        """
        from barnabas.pipeline.errors import UnknownTopic  # noqa: PLC0415  # see run
        from barnabas.storage.explain.known import ExplainError  # noqa: PLC0415  # see run

        try:
            self._archive(spark, without_gone=True)
        except (ExplainError, FileNotFoundError, UnknownTopic) as error:
            print(f"barnabas: {error}; the next run looks again", file=sys.stderr)

    def _archive(self, spark: SparkSession, *, without_gone: bool = False) -> None:
        from barnabas.pipeline.jobs.archive.job import archive  # noqa: PLC0415  # see run
        from barnabas.pipeline.jobs.progress import ProgressBar  # noqa: PLC0415  # see run

        bars: list[ProgressBar] = []

        def started(plans: Sequence[ArchivePlan]) -> None:
            self._explain(plans, to)
            total = sum(plan.log_bytes for plan in plans)
            bars.append(ProgressBar("archived", total, sys.stderr, self._clock))

        to = self._table(spark)
        path, source_options = self._logs(without_gone=without_gone)
        since = self._clock.monotonic()
        try:
            done = archive(
                spark,
                path,
                to,
                source_options,
                bytes_per_file=self._bytes_per_file,
                allow_gaps=self._options.allow_gaps,
                started=started,
                committed=lambda commit: bars[0].advance(commit.log_bytes),
            )
        finally:
            for bar in bars:
                bar.close()
        self._say(done, self._clock.monotonic() - since)
        self._merge(to)

    def _merge(self, to: ArchiveTable) -> None:
        if not self._merge_below:
            return
        merged = to.merge_small_files(self._merge_below)
        if merged.files:
            print(f"Merged {counted(merged.files, 'file')} into {counted(merged.into, 'file')}.")

    def _say(self, done: Archived, seconds: float) -> None:
        from barnabas.pipeline.jobs.archive.text import explain_done  # noqa: PLC0415  # see run

        print(explain_done(done, seconds))
